# SPDX-License-Identifier: GPL-2.0-or-later
"""The VM and the numbers of `peak` (verdict.py says what must come out)."""
from harness.lab.domain import Vm
from harness.stage.plan import (CORES, SOCKETS, Plan, default_share, guest_options, host_of,
                                set_tier, two_sockets)

from ..scenario import Option

WORKLOAD, MEMORY_MIB = "--records 50000 --operations 10 --update 0.2 --theta 0.5", 320
# Parts of the startup set's throughput; the double of it is within the whole host's.
NORMAL, DOUBLE = 0.7, 1.4
CALIBRATE_S = 8.0
PERIOD_S = {False: 5.0, True: 0.5}      # by close-up
PERIODS = {False: 6, True: 16}
FIRST_S = 3.0           # of normal traffic before the first period
REPORT_MS = {False: 500, True: 100}
MONITOR_MS = 500
OPTIONS = (Option("--close-up", "traffic doubles every 0.5 s, not every 5 s, in windows of 0.1 s",
                  {"action": "store_true"}, lambda _value: "-close-up"),)


def of(a):
    return make(a.ablate, a.seed, a.time_scale, a.share, a.tier, a.close_up)


def make(ablate, seed, time_scale, share=None, tier=None, close_up=False):
    period, tier = PERIOD_S[close_up] * time_scale, tier or "lend"
    steps = [(0, NORMAL)]
    at = FIRST_S * time_scale
    for i in range(PERIODS[close_up]):
        steps.append((at, NORMAL if i % 2 else DOUBLE))
        at += period
    steps.append((at, NORMAL))
    seconds = CALIBRATE_S * time_scale + at + FIRST_S
    schedule = ",".join(f"{t:g}:{rate:g}" for t, rate in steps)
    server = f"{WORKLOAD} --calibrate-seconds {CALIBRATE_S * time_scale:g} " \
             f"--rate-schedule {schedule} --seconds {seconds:g} " \
             f"--elastic {'none' if ablate else 'adapt'} " \
             f"--seed {seed} --interval-ms {REPORT_MS[close_up]}"
    vm = Vm("vm1", two_sockets(CORES, CORES), MEMORY_MIB,
            options=guest_options("vm1", server, MONITOR_MS))
    set_tier([vm], tier)
    load = {"normal": NORMAL, "double": DOUBLE, "period_s": period, "close_up": close_up,
            "seconds": seconds, "interval_ms": REPORT_MS[close_up]}
    return Plan(host_of(SOCKETS, CORES, 1, share or default_share(SOCKETS * CORES)), "strict",
                [vm], period, tier, more={"load": load})
