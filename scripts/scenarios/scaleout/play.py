# SPDX-License-Identifier: GPL-2.0-or-later
"""`scaleout` (paper 4.1, figure 5): two nodes with two-phase commit against one engine.

Runs on the machine itself, without VMs: what is compared, a function call against messages between
two processes, is the same in a VM, and under emulation everything around it would be slower.
"""
import os
import shutil
import tempfile
from contextlib import ExitStack

from harness.lab import versions
from harness.lab.oltp_node import Node
from harness.stage import sliced_run

from .plan import RECORDS, SLICE_S, TURNS, WORKLOAD
from .verdict import MEMORY, OPERATIONS, TWO_PHASE


def words(cpus):
    return ",".join(str(c) for c in cpus)


class Rig:
    """The two nodes, and the one engine with the same two partitions."""

    def __init__(self, a, p, stack, folder):
        self.sets, self.numa_nodes = p.more["sets"], p.more["numa_nodes"]
        self.folder, self.log = folder, os.path.join(a.out, "log", "nodes.log")
        common = [*WORKLOAD.split(), "--seed", str(a.seed)]
        self.nodes = []
        for i in (0, 1):
            cpus = ["--cpus", words(self.sets[i])]
            # Switched off: what would be remote is a second partition of the node itself.
            where = ["--two-tables"] if a.ablate else self._addresses(i)
            self.nodes.append(self._start(stack, [*common, *where, *cpus]))
        one = ["--two-tables", "--cpus"]
        if self.numa_nodes > 1:
            # Workers on one socket, the second partition on the other: each access is remote.
            one += [words(self.sets[0]), "--second-cpu", str(self.sets[1][0])]
            self.one_cpus = len(self.sets[0])
        else:
            together = sorted(set(self.sets[0]) | set(self.sets[1]))
            one.append(words(together))
            self.one_cpus = len(together)
        self.one = self._start(stack, [*common, *one])

    def _addresses(self, i):
        return ["--id", str(i + 1), "--listen", f"unix:{self.folder}/{i + 1}.sock",
                "--peer", f"unix:{self.folder}/{2 - i}.sock",
                "--log", f"{self.folder}/{i + 1}.log"]

    def _start(self, stack, args):
        node = Node(self.log, *args)
        stack.callback(node.end)
        return node

    def run_pair(self, found, seconds, remote, turn):
        for node in self.nodes:
            node.tell(f"run {seconds:g} {remote}")
        for i, node in enumerate(self.nodes):
            found.add(f"node{i + 1}", len(self.sets[i]), node.result("oltp-node-result "),
                      variant=TWO_PHASE, turn=turn, remote_ops=remote)

    def run_one(self, found, seconds, remote, turn):
        self.one.tell(f"run {seconds:g} {remote}")
        found.add("one", self.one_cpus, self.one.result("oltp-node-result "), variant=MEMORY,
                  turn=turn, remote_ops=remote)


def play(a, p, accelerator):
    seconds = SLICE_S * a.time_scale
    folder = tempfile.mkdtemp(prefix="ebb-scaleout-")
    os.makedirs(os.path.join(a.out, "log"), exist_ok=True)
    try:
        with ExitStack() as stack:
            found = sliced_run.Slices()
            found.step("start", "", f"two nodes and one engine load {RECORDS} records a partition")
            rig = Rig(a, p, stack, folder)
            for turn in range(TURNS):
                for remote in range(OPERATIONS + 1):
                    found.step("slice", "", f"turn {turn + 1} of {TURNS}: {remote} of "
                               f"{OPERATIONS} operations remote")
                    rig.run_pair(found, seconds, remote, turn)
                    rig.run_one(found, seconds, remote, turn)
            results, stats = _results(rig, found)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    sliced_run.record(a, p, accelerator, found, results, versions.of_programs(), engine=WORKLOAD,
                      numa_nodes=rig.numa_nodes, nodes=stats)


def _results(rig, found):
    """Totals of each process, and whether its table is as its transactions left it."""
    results, stats = {}, {}
    names = dict(zip(("node1", "node2", "one"), [*rig.nodes, rig.one]))
    for name, node in names.items():
        stats[name] = node.settled()
        audit = node.audit()
        mine = [s for s in found.samples if s.vm == name]
        lost = audit["damaged"] + audit["updates"] + audit["second_updates"]
        results[name] = {
            "committed": sum(s.committed for s in mine), "failed": sum(s.failed for s in mine),
            "aborted": sum(s.aborted for s in mine),
            # Nothing but reads: a table that changed, or misses a record, is as bad as a loss.
            "lost_updates": lost if audit["complete"] else max(1, lost)}
    return results, stats
