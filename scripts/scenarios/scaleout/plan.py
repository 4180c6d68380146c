# SPDX-License-Identifier: GPL-2.0-or-later
"""The processes and the numbers of `scaleout` (verdict.py says what must come out)."""
import glob
import os

from harness.stage.plan import Plan

from .verdict import OPERATIONS

RECORDS = 100000        # per partition, 1 KiB each
TURNS = 3
SLICE_S = 0.5
WORKLOAD = f"--operations {OPERATIONS} --update 0 --theta 0.5 --records {RECORDS}"


def of(_a):
    sets, numa_nodes = cpu_sets()
    host = {"spec": "auto", "emulated": False, "sockets": numa_nodes,
            "cores": len(set(sets[0]) | set(sets[1])), "threads": 1, "share": 1.0,
            "real_cpus": len(os.sched_getaffinity(0))}
    return Plan(host, "", [], 0.0, more={"sets": sets, "numa_nodes": numa_nodes})


def cpu_sets():
    """(CPUs of each of the two nodes, NUMA nodes with CPUs that we may use).

    Two sockets if there are two; otherwise both halves of the CPUs, or the only one twice.
    """
    ours = os.sched_getaffinity(0)
    nodes = []
    for path in sorted(glob.glob("/sys/devices/system/node/node*/cpulist")):
        with open(path, encoding="ascii") as f:
            cpus = sorted(parse_cpus(f.read()) & ours)
        if cpus:
            nodes.append(cpus)
    if len(nodes) >= 2:
        return (nodes[0], nodes[1]), len(nodes)
    cpus = sorted(ours)
    if len(cpus) == 1:
        return (cpus, cpus), 1
    half = len(cpus) // 2
    return (cpus[:half], cpus[half:2 * half]), 1


def parse_cpus(text):
    found = set()
    for part in text.strip().split(","):
        if part:
            first, _, last = part.partition("-")
            found.update(range(int(first), int(last or first) + 1))
    return found
