# SPDX-License-Identifier: GPL-2.0-or-later
"""The lab itself: it comes and goes without a trace, Pacemaker follows scores, moves VMs live, and
starts them again elsewhere when their host is lost or cut off."""
import os
import subprocess
import time
import unittest

import rig
from harness.lab.cluster import HOSTS
from harness.lab.process import SetupError

# Limits that only a hang reaches.
PLACE_S, MOVE_S, AGAIN_S, BOOT_S, REJOIN_S = 90, 120, 90, 180, 90


def traces(cluster):
    """What of a lab is on the machine."""
    found = []
    for pid in os.listdir("/proc"):
        try:
            with open(f"/proc/{pid}/root/run/ebb-host", encoding="utf-8") as f:
                if f.read().startswith(cluster.dir + " "):
                    found.append(f"process {pid}")
        except OSError:
            continue
    with open("/proc/self/mounts", encoding="utf-8") as f:
        found += [line for line in f if cluster.dir in line]
    return found


class TestLab(unittest.TestCase):
    def test_one_life_of_a_vm(self):
        cluster = rig.lab("lab")
        with cluster:
            boot, vm = cluster.boot("tcg"), rig.server_vm("db1", 1)
            cluster.add_vm(boot, vm)
            with self.subTest("a VM without a score runs nowhere"):
                self.assertEqual(cluster.qemus(), {})
            with self.subTest("it starts on the host with the best score"):
                cluster.set_scores("db1", {"h1": 900, "h2": 700, "h3": 100})
                self.wait_for(cluster, "db1", "h1", PLACE_S)
                rig.ping(cluster, vm, BOOT_S)
            with self.subTest("it moves live to a better one, and connections stay"):
                with cluster.connect((vm.address.partition("/")[0], rig.PORT)) as s:
                    cluster.set_scores("db1", {"h1": 500, "h2": 900})
                    self.wait_for(cluster, "db1", "h2", MOVE_S)
                    s.settimeout(BOOT_S)
                    s.sendall(b"PING\r\n")
                    self.assertEqual(s.recv(16), b"+PONG\r\n")
            with self.subTest("it starts again on the best of the others when its host is lost"):
                cluster.set_scores("db1", {"h1": 300, "h3": 600})
                cluster.crash("h2")
                self.wait_for(cluster, "db1", "h3", AGAIN_S)
                rig.ping(cluster, vm, BOOT_S)
            with self.subTest("the lost host comes back, and gets nothing without a score"):
                cluster.wait(lambda state: set(state.online) == set(HOSTS), REJOIN_S, "h2 is back")
                self.assertEqual(cluster.state().host_of("db1"), "h3")
            with self.subTest("a host that is cut off is fenced before its VM starts elsewhere"):
                cluster.on("h3", "ip", "link", "set", "eth0", "down")
                self.wait_for(cluster, "db1", "h1", AGAIN_S)
                with open(os.path.join(cluster.dir, "power.log"), encoding="utf-8") as f:
                    self.assertIn("reboot h3: on", f.read())
        self.assertEqual(traces(cluster), [])

    def wait_for(self, cluster, name, host, patience_s):
        """Looks all the time: a VM may be on two hosts only while it moves."""
        cluster.wait(lambda state: state.host_of(name) == host, patience_s, f"{name} on {host}")
        self.assertEqual(cluster.qemus().get(name), [host])

    def test_begins_again_at_once(self):
        command = [os.path.join(rig.BUILD, "..", "scripts", "cluster-lab"), "-d",
                   rig.lab("again").dir]
        for _ in range(8):
            subprocess.run([*command, "up"], check=True)
            subprocess.run([*command, "down"], check=True)

    def test_ends_with_its_owner(self):
        cluster = rig.lab("owner")
        command = [os.path.join(rig.BUILD, "..", "scripts", "cluster-lab"), "-d", cluster.dir]
        with subprocess.Popen(["sleep", "60"]) as owner:
            subprocess.run([*command, "up", "--owner", str(owner.pid)], check=True)
            subprocess.run([*command, "wait"], check=True)
            self.assertNotEqual(traces(cluster), [])
            owner.kill()
        end_at = time.monotonic() + 20
        while traces(cluster) and time.monotonic() < end_at:
            time.sleep(0.2)
        self.assertEqual(traces(cluster), [])
        with self.assertRaises(SetupError):
            cluster.on("h1", "true")
        subprocess.run([*command, "down"], check=True)      # again: no error
