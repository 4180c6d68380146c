# SPDX-License-Identifier: GPL-2.0-or-later
"""The VMs and numbers of `contention`, `peak` and `isolate`, in which the engine, or a policy for
sockets, chooses the CPUs (the verdicts say what must come out)."""
from dataclasses import dataclass, field

from . import plan, yardstick
from .domain import Cell, Vm

SCENARIOS = ("contention", "peak", "isolate")
SOCKETS = 2
CORES = {"contention": 4, "peak": 4, "isolate": 2}      # per socket
THREADS = {"contention": 1, "peak": 1, "isolate": 2}    # per core
COMPARED = ("contention", "isolate")    # throughput of one time with that of another
TWO_THREADS = 1.3       # what a core gives to two threads, against one (host-agent, emuspec.h)

# Updates only, and many of them: with a high theta nearly all transactions want the hottest record,
# which is locked for half of the time of each. With a low one there are enough records for few to
# meet, even with workers that are out of quota while they hold locks.
CONTENTION = "--records 400000 --operations 40 --update 1"
LOW, HIGH = 0.5, 0.99
LEAD_S, HIGH_S, LAST_S = 14.0, 20.0, 14.0

PEAK = "--records 50000 --operations 10 --update 0.2 --theta 0.5"
# Of what the startup set can do; the double of it is within what the whole host can.
NORMAL, DOUBLE = 0.7, 1.4
CALIBRATE_S = 8.0
PERIOD_S = {False: 5.0, True: 0.5}      # by close-up
PERIODS = {False: 6, True: 16}
FIRST_S = 3.0           # of normal traffic before the first period
INTERVAL_MS = {False: 500, True: 100}

# Few conflicts: what is compared is cores and threads, not locks.
FEW_CONFLICTS = "--operations 10 --update 0.05 --theta 0.2"
ISOLATE = f"--records 50000 {FEW_CONFLICTS}"
DWELL_S = 10.0
MONITOR_MS = 500


@dataclass
class EnginePlan(plan.Plan):
    load: dict = field(default_factory=dict)


def make(scenario, ablate, seed, time_scale, share=None, tier=None, close_up=False):
    measured = scenario in COMPARED
    per_core = TWO_THREADS if THREADS[scenario] == 2 else 1
    share = share or plan.default_share(SOCKETS * CORES[scenario] * per_core + measured)
    host = plan.host_of(SOCKETS, CORES[scenario], THREADS[scenario], share, measured)
    maker = {"contention": _contention, "peak": _peak, "isolate": _isolate}[scenario]
    vms, policy, dwell_s, load = maker(ablate, seed, time_scale, close_up)
    for vm in vms:
        vm.tier = tier or "lend"
        vm.plug = "demand" if vm.tier == "unplug" else "ahead"
    beside = yardstick.vm(SOCKETS, FEW_CONFLICTS, MONITOR_MS, seed) if measured else None
    return EnginePlan(scenario, policy, vms, dwell_s, host, load, tier=vms[0].tier,
                      yardstick=beside)


def _options(name, server, seed, interval_ms):
    return {"name": name, "shell": "ttyS1", "monitor": f"--interval-ms {MONITOR_MS}",
            "server": f"{server} --seed {seed} --interval-ms {interval_ms}"}


def _cells(scenario):
    """One socket to start with, another to take and to give back."""
    n = CORES[scenario]
    return [Cell(n, n, 0), Cell(n, 0, 1)]


def _contention(ablate, seed, scale, _close_up):
    high, low = LEAD_S * scale, (LEAD_S + HIGH_S) * scale
    seconds = low + LAST_S * scale
    # Without the engine's policy it takes what is offered, and keeps it.
    server = f"{CONTENTION} --theta {LOW} --theta-schedule {high:g}:{HIGH},{low:g}:{LOW} " \
             f"--seconds {seconds:g} --elastic {'follow' if ablate else 'adapt'}"
    vm = Vm("vm1", _cells("contention"), 640, options=_options("vm1", server, seed, 250))
    return [vm], "strict", HIGH_S * scale, {"low": LOW, "high": HIGH, "seconds": seconds}


def _peak(ablate, seed, scale, close_up):
    period = PERIOD_S[close_up] * scale
    steps = [(0, NORMAL)]
    at = FIRST_S * scale
    for i in range(PERIODS[close_up]):
        steps.append((at, NORMAL if i % 2 else DOUBLE))
        at += period
    steps.append((at, NORMAL))
    seconds = CALIBRATE_S * scale + at + FIRST_S
    schedule = ",".join(f"{t:g}:{rate:g}" for t, rate in steps)
    server = f"{PEAK} --calibrate-seconds {CALIBRATE_S * scale:g} --rate-schedule {schedule} " \
             f"--seconds {seconds:g} --elastic {'none' if ablate else 'adapt'}"
    vm = Vm("vm1", _cells("peak"), 320,
            options=_options("vm1", server, seed, INTERVAL_MS[close_up]))
    return [vm], "strict", period, {"normal": NORMAL, "double": DOUBLE, "period_s": period,
                                    "close_up": close_up, "seconds": seconds,
                                    "interval_ms": INTERVAL_MS[close_up]}


def _isolate(ablate, seed, scale, _close_up):
    n = CORES["isolate"] * THREADS["isolate"]
    vms = []
    for i in range(2):
        # Each starts on a socket of its own, which is the first node of the guest.
        cells = [Cell(n, 1, i), Cell(n, 0, 1 - i)]
        name = f"vm{i + 1}"
        vms.append(Vm(name, cells, 320, options=_options(name, ISOLATE + " --quiet", seed + i,
                                                         MONITOR_MS)))
    return vms, "fair" if ablate else "isolate", DWELL_S * scale, \
        {"sockets": {vm.name: [cell.host_node for cell in vm.cells] for vm in vms}}
