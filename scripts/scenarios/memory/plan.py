# SPDX-License-Identifier: GPL-2.0-or-later
"""The VM and the numbers of `memory` (verdict.py says what must come out)."""
from harness.lab.domain import Cell, Vm
from harness.stage.plan import Plan, default_share, guest_options, host_of

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


def of(a):
    return make(a.ablate, a.seed, a.time_scale, a.share)


def make(ablate, seed, time_scale, share=None):
    host = host_of(SOCKETS, CORES, 1, share or default_share(SOCKETS * CORES))
    deadline_ms = int(DEADLINE_MS * time_scale)
    cells = [Cell(CORES, 1, 0, POOL_MIB), Cell(CORES, 0, NODE, POOL_MIB)]
    server = f"{WORKLOAD} --records {RECORDS} --seed {seed} --interval-ms {REPORT_MS} --pool " \
             "--control -"
    if not ablate:
        server += " --cold-dir /cold"
    vm = Vm("vm1", cells, BOOT_MIB, mem_deadline_ms=deadline_ms, disks_mib=[DISK_MIB],
            options=guest_options("vm1", server, REPORT_MS, cold="vda"))
    # The policy stays: what the ablation lacks is the engine's way to do without memory.
    return Plan(host, "fair", [vm], DWELL_S * time_scale, agent_options={"pool_mib": POOL_MIB},
                more={"memory": {
                    "node": NODE, "pool_mib": POOL_MIB, "deadline_ms": deadline_ms,
                    "records": RECORDS, "disk": "virtio-blk, raw sparse file, O_DIRECT",
                    "verifications": []}})
