# SPDX-License-Identifier: GPL-2.0-or-later
"""The VMs and the numbers of `spot` (verdict.py says what must come out)."""
from harness.lab.domain import Cell, Vm
from harness.stage.plan import (CORES, SOCKETS, TOUR_MS, Plan, default_share, guest_options,
                                host_of, set_tier)

from ..scenario import Option, number

VMS = 3
# 1 KiB each. A worker whose core is out of quota keeps its locks for most of a period, so that the
# others meet far more conflicts than on a real host. A VM that joins needs a small table, since it
# is loaded on one core.
RECORDS, MEMORY_MIB = 10000, 256
REPORT_MS = 250         # of engine and monitor
WORKLOAD = "--workload ycsb --operations 10 --update 0.2 --theta 0.5"
DWELL_S = 9.0
# Static allocation: VMs that own their part of the host for good, 3 + 3 + 2 cores.
STATIC = ((2, 1), (1, 2), (1, 1))
OPTIONS = (Option("--joins", "how often a VM joins, 3 to 30; beyond the third VMs leave and come "
                  "again (3)", {"type": number(VMS, 30, int), "metavar": "N"}),)


def of(a):
    return make(a.ablate, a.seed, a.time_scale, a.share, a.tier, a.joins)


def make(ablate, seed, time_scale, share=None, tier=None, joins=None):
    host = host_of(SOCKETS, CORES, 1, share or default_share(SOCKETS * CORES))
    tier = tier or "lend"
    vms = [_vm(i, ablate, seed + i) for i in range(VMS)]
    set_tier(vms, tier)
    return Plan(host, "strict" if ablate else "fair", vms, DWELL_S * time_scale, tier,
                more={"joins": joins or VMS})


def _vm(i, ablate, seed):
    # The one CPU to start with alternates between the sockets.
    first, second = (i % 2, 1 - i % 2)
    if ablate:
        cells = [Cell(STATIC[i][node], STATIC[i][node], node) for node in (first, second)]
    else:
        cells = [Cell(CORES, 1, first), Cell(CORES, 0, second)]
    name = f"vm{i + 1}"
    server = f"{WORKLOAD} --records {RECORDS} --seed {seed} --interval-ms {REPORT_MS} --quiet"
    return Vm(name, cells, MEMORY_MIB,
              options=guest_options(name, server, REPORT_MS, tour=TOUR_MS))
