# SPDX-License-Identifier: GPL-2.0-or-later
"""The VM and the numbers of `contention` (verdict.py says what must come out)."""
from harness.lab.domain import Vm
from harness.measure import yardstick_vm
from harness.stage.plan import (CORES, FEW_CONFLICTS, SOCKETS, Plan, default_share, guest_options,
                                host_of, set_tier, two_sockets)

# Updates only, and many of them: with a high theta nearly all transactions want the hottest record,
# which is locked for half of the time of each. With a low one there are enough records for few to
# meet, even with workers that are out of quota while they hold locks.
RECORDS, MEMORY_MIB = 400000, 640
WORKLOAD = f"--records {RECORDS} --operations 40 --update 1"
LOW, HIGH = 0.5, 0.99
# The engine compares numbers of CPUs for up to 12 s, half of the time with fewer, before it watches
# what it found for 2, 4, 8 s and so on; what it holds is what it has for most of a phase's end.
LEAD_S, HIGH_S, LAST_S = 28.0, 24.0, 28.0
REPORT_MS, MONITOR_MS = 250, 500


def of(a):
    return make(a.ablate, a.seed, a.time_scale, a.share, a.tier)


def make(ablate, seed, time_scale, share=None, tier=None):
    share = share or default_share(SOCKETS * CORES, with_yardstick=True)
    high, low = LEAD_S * time_scale, (LEAD_S + HIGH_S) * time_scale
    seconds, tier = low + LAST_S * time_scale, tier or "lend"
    # Without the engine's policy it takes what is offered, and keeps it.
    server = f"{WORKLOAD} --theta {LOW} --theta-schedule {high:g}:{HIGH},{low:g}:{LOW} " \
             f"--seconds {seconds:g} --elastic {'follow' if ablate else 'adapt'} " \
             f"--seed {seed} --interval-ms {REPORT_MS}"
    vm = Vm("vm1", two_sockets(CORES, CORES), MEMORY_MIB,
            options=guest_options("vm1", server, MONITOR_MS))
    set_tier([vm], tier)
    return Plan(host_of(SOCKETS, CORES, 1, share, with_yardstick=True), "strict", [vm],
                HIGH_S * time_scale, tier,
                yardstick=yardstick_vm.vm(SOCKETS, f"--records {RECORDS} {FEW_CONFLICTS}",
                                          MEMORY_MIB, MONITOR_MS, seed),
                more={"load": {"low": LOW, "high": HIGH, "seconds": seconds}})
