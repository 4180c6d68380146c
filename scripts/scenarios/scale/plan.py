# SPDX-License-Identifier: GPL-2.0-or-later
"""The VM and the numbers of `scale` (verdict.py says what must come out)."""
from harness.lab.domain import Cell, Vm
from harness.measure import yardstick_vm
from harness.stage.plan import (LONG_PERIOD_MS, SOCKETS, TOUR_MS, Plan, default_share,
                                guest_options, host_of, set_tier, two_sockets)

# Per socket. Few and therefore large, so that what a guest does beside transactions (reports, RCU),
# and what it loses each time that the core's period begins, are small parts of the first core.
CORES = 3
# 1 KiB each. A worker whose core is out of quota keeps its locks for most of a period, so that the
# others meet far more conflicts than on a real host, and the more the more there are: what scales
# needs a large table.
RECORDS, MEMORY_MIB = 200000, 640
# Interval of engine and monitor. Reports are made on a guest's first CPU, of which they take a
# tenth if there are four a second: where throughput per CPU is compared they are rarer.
REPORT_MS = 1000
WORKLOAD = f"--workload ycsb --records {RECORDS} --operations 10 --update 0.2 --theta 0.5"
DWELL_S = 10.0
TIER = "unplug"


def of(a):
    return make(a.ablate, a.seed, a.time_scale, a.share)


def make(ablate, seed, time_scale, share=None):
    share = share or default_share(SOCKETS * CORES, with_yardstick=True)
    dwell_s = DWELL_S * time_scale
    server = f"{WORKLOAD} --seed {seed} --interval-ms {REPORT_MS} --quiet " \
             f"--step-seconds {dwell_s:g}"
    vm = Vm("vm1", [Cell(1, 1, 0)] if ablate else two_sockets(CORES, 1), MEMORY_MIB,
            options=guest_options("vm1", server, REPORT_MS, tour=TOUR_MS))
    set_tier([vm], TIER)
    return Plan(host_of(SOCKETS, CORES, 1, share, with_yardstick=True,
                        period_ms=LONG_PERIOD_MS),
                "strict" if ablate else "fair", [vm], dwell_s, TIER,
                yardstick=yardstick_vm.vm(SOCKETS, WORKLOAD, MEMORY_MIB, REPORT_MS, seed,
                                          tour=TOUR_MS))
