# SPDX-License-Identifier: GPL-2.0-or-later
"""VMs on hosts whose scores ebb-placed publishes."""
import os
import unittest

import rig
from harness.lab.cluster import HOSTS, PLACER

# Limits that only a hang reaches.
PLACE_S, AGAIN_S, BOOT_S = 120, 120, 180
VMS = ("db1", "db2")


def best(scores, without=None):
    """The host with the highest score but for one."""
    return max((host for host in scores if host != without and scores[host] is not None),
               key=scores.get)


class TestPlaced(unittest.TestCase):
    def test_places_and_dies(self):
        cluster = rig.lab("placed")
        cluster.with_agents("emulated:1x2x1@0.5", "fair")
        cluster.with_placers()
        with cluster:
            boot = cluster.boot("tcg")
            vms = [rig.server_vm(name, i + 1) for i, name in enumerate(VMS)]
            for vm in vms:
                cluster.add_vm(boot, vm)
            with self.subTest("VMs start, and every host has a score for each of them"):
                state = cluster.wait(lambda s: all(s.host_of(vm) and set(s.scores.get(vm, ())) ==
                                                   set(HOSTS) for vm in VMS), PLACE_S,
                                     "both VMs run, with scores of all hosts")
                for vm in vms:
                    rig.ping(cluster, vm, BOOT_S)
            with self.subTest("each stays where it is"):
                state = cluster.wait(lambda s: all(s.host_of(vm) == best(s.scores[vm])
                                                   for vm in VMS), PLACE_S,
                                     "the host of each VM has its best score")
            with self.subTest("when no placer is alive, a lost VM starts on the best of the rest"):
                for host in HOSTS:
                    self.stop_placer(cluster, host)
                state = cluster.state()
                lost = state.host_of("db1")
                wanted = best(state.scores["db1"], lost)
                cluster.crash(lost)
                cluster.wait(lambda s: s.host_of("db1") == wanted, AGAIN_S, f"db1 on {wanted}")
                rig.ping(cluster, vms[0], BOOT_S)
                self.assertEqual(rig.doubled(cluster), set())

    @staticmethod
    def stop_placer(cluster, host):
        """It does nothing any more, and is not started again."""
        with open(os.path.join(cluster.dir, host, "run", "ebb", PLACER + ".pid"),
                  encoding="ascii") as f:
            cluster.on(host, "kill", "-STOP", f.read().strip())
