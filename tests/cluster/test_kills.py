# SPDX-License-Identifier: GPL-2.0-or-later
"""Agents and hosts are killed at random, also while VMs move: nothing is ever granted twice, and in
the end every VM runs, on one host, with one agent.

EBB_TEST_CLUSTER_KILLS: how many kills (6; check-full 50); EBB_TEST_SEED: of what is drawn (1).
"""
import os
import random
import threading
import time
import unittest

import rig
from harness.judge import grants
from harness.lab.cluster import AGENT, HOSTS

FULL = os.environ.get("EBB_TEST_FULL") == "1"
KILLS = int(os.environ.get("EBB_TEST_CLUSTER_KILLS", "50" if FULL else "6"))
SEED = int(os.environ.get("EBB_TEST_SEED", "1"))
VMS = ("db1", "db2", "db3")
SETTLE_S, BOOT_S = 180, 180         # limits that only a hang reaches
LOOK_S = 0.25
STAYS, ELSEWHERE = 1000, (600, 300)


class Watch(threading.Thread):
    """Looks all the time; found: what was granted twice in two looks in a row. Between the answers
    of two agents a VM may have moved, and while it moves it has a QEMU on both hosts."""

    def __init__(self, cluster):
        super().__init__(daemon=True)
        self.cluster, self.over, self.found, self.looks = cluster, threading.Event(), [], 0

    def run(self):
        before = set()
        while not self.over.is_set():
            now = set(grants.doubled(self.cluster.grants()))
            self.found += sorted(now & before)
            before, self.looks = now, self.looks + 1
            self.over.wait(LOOK_S)


class TestKills(unittest.TestCase):
    def test_nothing_is_granted_twice(self):
        self.chance, self.where, self.said = random.Random(SEED), {}, []
        self.cluster = rig.lab("kills")
        self.cluster.with_agents("emulated:1x3x1@0.5", "fair")
        with self.cluster:
            boot = self.cluster.boot("tcg")
            vms = [rig.server_vm(name, i + 1) for i, name in enumerate(VMS)]
            for i, vm in enumerate(vms):
                self.cluster.add_vm(boot, vm)
                self.where[vm.name] = HOSTS[i]
            self.publish()
            self.settle()
            for vm in vms:
                rig.ping(self.cluster, vm, BOOT_S)
            watch = Watch(self.cluster)
            watch.start()
            for _ in range(KILLS):
                self.kill()
                self.settle()
                self.publish()
            for vm in vms:
                rig.ping(self.cluster, vm, BOOT_S)
            watch.over.set()
            watch.join()
        print(f"{KILLS} kills: {', '.join(self.said)}; {watch.looks} looks", flush=True)
        self.assertEqual(watch.found, [])
        self.assertGreater(watch.looks, KILLS)

    def publish(self, leaves=None):
        """Each VM stays where it is, but for one; the order of the other hosts is drawn."""
        for vm, home in self.where.items():
            others = [host for host in HOSTS if host != home]
            self.chance.shuffle(others)
            scores = dict(zip(others, ELSEWHERE), **{home: 0 if vm == leaves else STAYS})
            self.cluster.set_scores(vm, scores)

    def kill(self):
        host = self.chance.choice(HOSTS)
        what = self.chance.choice(("agent", "agent", "agent and move", "agent and move", "host"))
        self.said.append(f"{what} of {host}")
        if what == "host":
            self.cluster.crash(host)
            return
        if what == "agent and move":
            vm = self.chance.choice(VMS)
            self.publish(leaves=vm)
            # Somewhere in the move: before it begins, in the middle, or after it.
            time.sleep(self.chance.random() * 3)
        self.cluster.kill(host, AGENT)

    def settle(self):
        """All hosts are there, each VM runs on one of them, and its agent alone has it."""
        def settled(state):
            where = {vm: state.host_of(vm) for vm in VMS}
            if set(state.online) != set(HOSTS) or None in where.values():
                return False
            held = {vm["name"]: host for host, vms in self.cluster.grants().items() for vm in vms
                    if vm["state"] == "running" and vm["cpus_held"]}
            qemus = self.cluster.qemus()
            return held == where and all(qemus.get(vm) == [where[vm]] for vm in VMS)
        state = self.cluster.wait(settled, SETTLE_S, "after " + ", ".join(self.said[-2:]) +
                                  ": each VM runs, with one agent")
        self.where = {vm: state.host_of(vm) for vm in VMS}
