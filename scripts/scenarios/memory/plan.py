# SPDX-License-Identifier: GPL-2.0-or-later
"""The VM and the numbers of `memory` (verdict.py says what must come out)."""
import os
from dataclasses import dataclass, field

from .. import plan
from ..domain import Cell, Vm

SCENARIO = "memory"
NODE = 1                        # whose CPUs and memory are taken and given back
SOCKETS, CORES = 2, 2
POOL_MIB = 128                  # on each node
BOOT_MIB = 384                  # kernel, programs, index and whatever else does not move
DISK_MIB = 1024
# About four fifths of both pools: with one of them gone, a good part of the table must go to disk.
RECORDS = 190000
# Half of the table is cold and gets 5% of the accesses, so that every sixth transaction or so asks
# for a record that may be on disk.
WORKLOAD = ("--workload ycsb --operations 4 --update 0.2 --theta 0.5 --cold-access 0.05 "
            "--cold-part 0.5")
REPORT_MS = 500
DWELL_S = 10.0
# Writing 100 MiB to the disk of an emulated guest takes seconds.
DEADLINE_MS = 20000


@dataclass
class MemoryPlan(plan.Plan):
    memory: dict = field(default_factory=dict)
    agent_options: dict = field(default_factory=dict)


def make(ablate, seed, time_scale, share=None):
    cpus = len(os.sched_getaffinity(0))
    share = share or min(1.0, int(100 * plan.HOST_LOAD * cpus / (SOCKETS * CORES)) / 100)
    host = {"spec": f"emulated:{SOCKETS}x{CORES}x1@{share:g}", "emulated": True,
            "sockets": SOCKETS, "cores": SOCKETS * CORES, "threads": 1, "share": share,
            "real_cpus": cpus}
    deadline_ms = int(DEADLINE_MS * time_scale)
    cells = [Cell(CORES, 1, 0, POOL_MIB), Cell(CORES, 0, NODE, POOL_MIB)]
    server = f"{WORKLOAD} --records {RECORDS} --seed {seed} --interval-ms {REPORT_MS} --pool " \
             "--control -"
    if not ablate:
        server += " --cold-dir /cold"
    vm = Vm("vm1", cells, BOOT_MIB, mem_deadline_ms=deadline_ms, disks_mib=[DISK_MIB],
            options={"name": "vm1", "shell": "ttyS1", "cold": "vda",
                     "monitor": f"--interval-ms {REPORT_MS}", "server": server})
    # The policy stays: what the ablation lacks is the engine's way to do without memory.
    return MemoryPlan(SCENARIO, "fair", [vm], DWELL_S * time_scale, host,
                      {"node": NODE, "pool_mib": POOL_MIB, "deadline_ms": deadline_ms,
                       "records": RECORDS, "disk": "virtio-blk, raw sparse file, O_DIRECT",
                       "verifications": []},
                      {"pool_mib": POOL_MIB})
