# SPDX-License-Identifier: GPL-2.0-or-later
"""VMs of Ebb on hosts of a cluster: agents take over what moves, also when it does not move."""
import os
import time
import unittest

import rig
from harness.lab.cluster import AGENT

# Limits that only a hang reaches.
PLACE_S, MOVE_S, BOOT_S, TAKE_OVER_S = 90, 120, 180, 60


class TestAgents(unittest.TestCase):
    def test_moves(self):
        cluster = rig.lab("agents")
        cluster.with_agents("emulated:1x2x1@0.5", "fair")
        with cluster:
            boot, vm = cluster.boot("tcg"), rig.server_vm("db1", 1)
            cluster.add_vm(boot, vm)
            cluster.set_scores("db1", {"h1": 900, "h2": 300, "h3": 100})
            self.wait_for(cluster, "h1")
            rig.ping(cluster, vm, BOOT_S)
            with self.subTest("the agent of its host manages it, no other one does"):
                self.assertTrue(self.takes_over(cluster, "h1"))
            with self.subTest("after a live migration the other agent does"):
                cluster.set_scores("db1", {"h1": 400, "h2": 900})
                self.wait_for(cluster, "h2")
                self.assertTrue(self.takes_over(cluster, "h2"))
                rig.ping(cluster, vm, BOOT_S)
            with self.subTest("a failed migration leaves it running at its source"):
                pid = self.pid(cluster, "h2")
                cluster.on("h3", "sh", "-c", "kill -9 $(pidof libvirtd)")
                cluster.set_scores("db1", {"h2": 500, "h3": 1000})
                cluster.wait(lambda state: "h3" not in state.scores.get("db1", {}), MOVE_S,
                             "the score of the host that can not have it is taken back")
                self.wait_for(cluster, "h2")
                self.assertEqual(self.pid(cluster, "h2"), pid)
                rig.ping(cluster, vm, BOOT_S)
            with self.subTest("and free to move elsewhere"):
                cluster.set_scores("db1", {"h1": 900})
                self.wait_for(cluster, "h1")
                self.assertTrue(self.takes_over(cluster, "h1"))
            with self.subTest("an agent that was killed takes up what it finds"):
                self.assertTrue(cluster.kill("h1", AGENT))
                self.assertTrue(self.takes_over(cluster, "h1"))

    @staticmethod
    def pid(cluster, host):
        with open(os.path.join(cluster.dir, host, "run", "libvirt", "qemu", "db1.pid"),
                  encoding="ascii") as f:
            return f.read()

    def wait_for(self, cluster, host):
        cluster.wait(lambda state: state.host_of("db1") == host, MOVE_S, f"db1 on {host}")
        self.assertEqual(cluster.qemus(), {"db1": [host]})

    @staticmethod
    def takes_over(cluster, host):
        """That agent alone has the VM, with its driver up and nothing granted twice."""
        end_at = time.monotonic() + TAKE_OVER_S
        while time.monotonic() < end_at:
            told = {name: [vm for vm in vms if vm["state"] == "running"]
                    for name, vms in cluster.grants().items()}
            if any(told.get(name) for name in told if name != host):
                if rig.doubled(cluster):
                    return False
            elif told.get(host) and told[host][0]["driver"] and told[host][0]["cpus_held"]:
                return True
            time.sleep(0.2)
        return False
