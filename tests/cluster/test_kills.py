# SPDX-License-Identifier: GPL-2.0-or-later
"""Agents, placers and hosts are killed at random, also while VMs move: nothing is ever granted
twice, and in the end every VM runs, on one host, with one agent, and every host has a score for it.

EBB_TEST_CLUSTER_KILLS: how many kills (6; check-full 50); EBB_TEST_SEED: of what is drawn (1).
"""
import os
import random
import threading
import time
import unittest

import rig
from harness.judge import grants
from harness.lab.cluster import AGENT, HOSTS, PLACER

FULL = os.environ.get("EBB_TEST_FULL") == "1"
KILLS = int(os.environ.get("EBB_TEST_CLUSTER_KILLS", "50" if FULL else "6"))
SEED = int(os.environ.get("EBB_TEST_SEED", "1"))
VMS = ("db1", "db2", "db3")
SETTLE_S, BOOT_S = 180, 180         # limits that only a hang reaches
LOOK_S = 0.25
KINDS = (AGENT, PLACER, f"{AGENT} and move", f"{PLACER} and move", "host")


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
        self.cluster.with_placers()
        with self.cluster:
            boot = self.cluster.boot("tcg")
            vms = [rig.server_vm(name, i + 1) for i, name in enumerate(VMS)]
            for vm in vms:
                self.cluster.add_vm(boot, vm)
            self.settle()
            for vm in vms:
                rig.ping(self.cluster, vm, BOOT_S)
            watch = Watch(self.cluster)
            watch.start()
            for _ in range(KILLS):
                self.kill()
                self.settle()
            for vm in vms:
                rig.ping(self.cluster, vm, BOOT_S)
            watch.over.set()
            watch.join()
        print(f"{KILLS} kills: {', '.join(self.said)}; {watch.looks} looks", flush=True)
        self.assertEqual(watch.found, [])
        self.assertGreater(watch.looks, KILLS)

    def kill(self):
        host, what = self.chance.choice(HOSTS), self.chance.choice(KINDS)
        self.said.append(f"{what} of {host}")
        if what == "host":
            self.cluster.crash(host)
            self.cluster.wait(lambda state: host not in state.online, SETTLE_S, f"{host} is lost")
            return
        program, _, more = what.partition(" ")
        vm = self.chance.choice(VMS)
        if more:
            target = self.chance.choice([other for other in HOSTS if other != self.where[vm]])
            self.said[-1] += f" ({vm} to {target})"
            self.cluster.on(target, "crm_resource", "--move", "-r", vm, "-N", target)
            # Somewhere in the move: before it begins, in the middle, or after it.
            time.sleep(self.chance.random() * 3)
        self.cluster.kill(host, program)
        if more:
            self.settle()
            self.cluster.on("h1", "crm_resource", "--clear", "-r", vm)

    def settle(self):
        """All hosts are there, each VM runs on one of them, its agent alone has it, and each host
        has a score for it."""
        def settled(state):
            where = {vm: state.host_of(vm) for vm in VMS}
            if set(state.online) != set(HOSTS) or None in where.values():
                return False
            if any(set(HOSTS) != {host for host, score in state.scores.get(vm, {}).items()
                                  if score is not None} for vm in VMS):
                return False
            held = {vm["name"]: host for host, vms in self.cluster.grants().items() for vm in vms
                    if vm["state"] == "running" and vm["cpus_held"]}
            qemus = self.cluster.qemus()
            return held == where and all(qemus.get(vm) == [where[vm]] for vm in VMS)
        state = self.cluster.wait(settled, SETTLE_S, "after " + ", ".join(self.said[-2:]) +
                                  ": each VM runs, with one agent and scores")
        self.where = {vm: state.host_of(vm) for vm in VMS}
