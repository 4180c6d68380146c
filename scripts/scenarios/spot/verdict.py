# SPDX-License-Identifier: GPL-2.0-or-later
"""Verdict of `spot`: three VMs join and leave a host under a fair policy (paper 4.2, figure 6).

A VM has joined once its driver is up, which is when the agent begins to make room for it, and has
left once it no longer runs. Where CPUs are plugged and unplugged, what its engine needs to load
records and to connect counts as part of the exchange. Where they are lent that would hide it, and
the time counts from the moment in which the engine is ready to take CPUs: when its first request
arrives at the agent. The time between one change of who is there and the next is a phase. A VM that
boots, or that was told to stop and still runs, is there without having a share: it ends a phase,
and the next one to be judged begins when it has joined or left. In each phase the shares must
become equal within one core in time and stay so to the end of the phase. Equal alone would be easy
(nobody gets anything), so a share is measured against the cores that are there to be shared.
"""
import math
from dataclasses import dataclass

from harness.judge import delivery, series
from harness.judge.checks import (CPU_EVENTS, Verdict, idle_core_share, latency_checks,
                                  outcome_checks, reason_checks, sampling_checks)
from harness.record.schema import Check

CONVERGE_MS = 5000      # each time
READY_CONVERGE_MS = 200     # lent or parked CPUs, from the engine's readiness; median of the joins
STALL_S = 2.0           # longest time an engine may go without a commit
PER_CPU_SPREAD = 25.0   # percent between the best and the worst VM's throughput per CPU, in a phase
SETTLE_S = 2.0          # throughput is compared only this long after shares are equal


@dataclass
class Phase:
    """[begin, end) in which the same VMs are there. cause: start (boots), join, stop, leave."""
    begin: float
    end: float
    cause: str
    vm: str
    joined: tuple           # VMs with a share
    others: tuple           # VMs that run without one: booting, or told to stop


def lives(run):
    """{vm: [(begin, end)]}: from each time it was started until it was told to end."""
    found = {vm: [] for vm in run["vms"]}
    for step in sorted(run["steps"], key=lambda s: s["t_s"]):
        of_vm = found.get(step["vm"])
        if step["action"] == "start":
            of_vm.append((step["t_s"], math.inf))
        elif step["action"] == "stop" and of_vm:
            of_vm[-1] = (of_vm[-1][0], step["t_s"])
    return found


def is_told_to_end(lived_of_vm, t):
    """Whether the last life that had begun by then had ended by then."""
    ends = [end for begin, end in lived_of_vm if begin <= t]
    return bool(ends) and ends[-1] <= t


def phases(samples, lived):
    """Cuts the run where a VM starts, joins, stops or leaves. lived: what lives() returns."""
    found, joined, leaving, running, worked = [], (), (), (), set()
    for t, vms in series.ticks(samples):
        now = tuple(n for n in sorted(vms) if vms[n].state == "running")
        gone = tuple(n for n in now if n in leaving or is_told_to_end(lived.get(n, ()), t) or
                     n in joined and n in worked and vms[n].workers == 0)
        worked = {n for n in now if n in worked or vms[n].workers > 0}
        here = tuple(n for n in now if n not in gone and (n in joined or vms[n].driver))
        if (now, here, gone) == (running, joined, leaving):
            continue
        if found:
            found[-1].end = t
        cause, vm = _cause(running, now, joined, here, gone)
        found.append(Phase(t, t, cause, vm, here, tuple(n for n in now if n not in here)))
        running, joined, leaving = now, here, gone
    if found:
        found[-1].end = max(s.t_s for s in samples)
    return found


def _cause(running, now, joined, here, gone):
    """What happened between two moments; if several things did, the first that is judged."""
    for cause, vms in (("join", set(here) - set(joined)), ("leave", set(running) - set(now)),
                       ("stop", set(gone) & set(joined)), ("start", set(now) - set(running))):
        if vms:
            return cause, min(vms)
    return "stop", min(gone)


def shares_equal(vms, phase, cores):
    """True if the joined VMs divide what the others leave them, equal within one core."""
    held = [vms[n].cpus_held if n in vms else 0 for n in phase.joined]
    left = cores - sum(vms[n].cpus_held for n in phase.others if n in vms)
    return max(held) - min(held) <= 1 and min(held) >= left // len(held)


def equal_since(samples, events, phase, cores):
    """When shares became equal for the rest of the phase, or None. Between the sample that shows
    them equal and the one before, the last change of what somebody holds is the moment."""
    since = before = None
    for t, vms in series.ticks(samples):
        if not phase.begin <= t < phase.end:
            before = t
            continue
        if not shares_equal(vms, phase, cores):
            since = None
        elif since is None:
            since = max((e.t_s for e in events if e.event in CPU_EVENTS and
                         (phase.begin if before is None else before) < e.t_s <= t), default=t)
        before = t
    return since


def convergence_s(samples, phase, cores):
    """Seconds from the begin of the phase until shares are equal for the rest of it, or None."""
    since = equal_since(samples, (), phase, cores)
    return None if since is None else since - phase.begin


def ready_convergence_s(samples, events, phase, cores):
    """The same from when the engine of the VM that joined first asked for CPUs; not less than 0."""
    asked = min((e.t_s for e in events if e.event == "request" and e.vm == phase.vm and
                 phase.begin <= e.t_s < phase.end), default=None)
    since = equal_since(samples, events, phase, cores)
    return None if asked is None or since is None else max(0.0, since - asked)


def per_cpu_spread(samples, phase, after):
    """Percent between best and worst VM in throughput per CPU held, had all CPU time come that was
    due (delivery.py), medians; None: unknown."""
    rates = []
    for vm in phase.joined:
        rates.append(_median_rate([s for s in samples
                                   if s.vm == vm and after <= s.t_s < phase.end]))
    if not rates or None in rates or max(rates) <= 0:
        return None
    return 100.0 * (max(rates) - min(rates)) / max(rates)


def _median_rate(rows):
    rates = [s.tps / s.cpus_held for s in rows if s.tps is not None and s.cpus_held > 0]
    given = delivery.over(rows)
    rate = series.percentile(rates, 0.5)
    return rate if given is None else given.full(rate)


def evaluate(run, samples, events):
    cores = run["host"]["cores"]
    lived = lives(run)
    found = phases(samples, lived)
    judged = [p for p in found if p.cause in ("join", "leave") and p.joined]
    checks = _attendance(run, samples, found)
    is_plugged = run.get("tier", "unplug") == "unplug"
    convergence, stages, names = [], [], set()
    for p in judged:
        name = _unused(f"{p.cause}_{p.vm}", names)
        took = convergence_s(samples, p, cores)
        ms = None if took is None else round(took * 1000)
        ready = ready_convergence_s(samples, events, p, cores) if p.cause == "join" else None
        ready_ms = None if ready is None else round(ready * 1000)
        judged_ms = ms if is_plugged or p.cause != "join" else ready_ms
        if p.cause == "join":
            convergence.append(judged_ms)
        checks.append(Check.at_most(
            f"shares_equal_after_{name}", judged_ms, CONVERGE_MS * run["time_scale"],
            "ms", f"{_words(len(p.joined), cores)}, until the next change"))
        spread = None if took is None else per_cpu_spread(
            samples, p, p.begin + took + SETTLE_S * run["time_scale"])
        if len(p.joined) > 1:
            checks.append(Check.at_most(
                f"tps_per_cpu_spread_after_{name}",
                None if spread is None else round(spread, 1), PER_CPU_SPREAD, "%",
                "throughput per CPU held, best VM against worst"))
        stages.append({"t_s": round(p.begin, 3), "cause": p.cause, "vm": p.vm,
                       "joined": list(p.joined), "convergence_ms": ms,
                       "ready_convergence_ms": ready_ms,
                       "per_cpu_spread_pct": spread})
    if not is_plugged:
        checks.append(_ready_check(run, convergence))
    convergence = [ms for ms in convergence if ms is not None]
    checks.append(_stall_check(run, samples, lived))
    begin, end = _span(found)
    checks += outcome_checks(run) + reason_checks(samples, events) + latency_checks(events)
    checks += sampling_checks(samples, begin, end)
    idle = idle_core_share(samples, cores, begin, end)
    return Verdict(checks, convergence,
                   {"phases": stages, "idle_core_pct": None if idle is None else
                    round(100 * idle, 1)})


def _ready_check(run, convergence):
    """One that was not measured counts as late, not as absent."""
    known = [math.inf if ms is None else ms for ms in convergence]
    median = series.percentile(known, 0.5)
    return Check.at_most("shares_equal_when_ready_ms",
                         None if median is None or math.isinf(median) else median,
                         READY_CONVERGE_MS * run["time_scale"], "ms",
                         f"from an engine's first request until shares are equal, median of "
                         f"{len(known)} joins")


def _words(vms, cores):
    if vms == 1:
        return f"the only VM holds all of {cores} cores that others leave it"
    return f"{vms} VMs within one core of each other, at least {cores // vms} each"


def _unused(name, names):
    """The name, numbered from the second time on."""
    times, numbered = 2, name
    while numbered in names:
        numbered = f"{name}_{times}"
        times += 1
    names.add(numbered)
    return numbered


def _attendance(run, samples, found):
    joins = {p.vm for p in found if p.cause == "join"}
    leaves = {p.vm for p in found if p.cause == "leave"}
    worked = {s.vm for s in samples if s.workers > 0}
    want = len(run["vms"])
    most = max((len(p.joined) for p in found), default=0)
    return [Check.equal("vms_joined", len(joins & worked), want, "VMs",
                        "VMs that joined and whose engine ran"),
            Check.equal("vms_at_once", most, want, "VMs", "most VMs that shared the host"),
            Check.equal("vms_left", len(leaves), want, "VMs", "VMs that left before the end"),
            Check.equal("joins", sum(p.cause == "join" for p in found),
                        run.get("joins", want), "joins", "times that a VM joined")]


def _stall_check(run, samples, lived):
    worst = None
    for vm in run["vms"]:
        for begin, end in lived[vm] or ((0.0, math.inf),):
            # Its last report says that it runs until it is gone.
            rows = [s for s in samples if s.vm == vm and begin <= s.t_s < end and
                    s.state == "running" and s.workers > 0]
            if not rows:
                return Check.at_most("longest_stall_s", None, STALL_S, "s",
                                     f"{vm} was never seen")
            worst = max(worst or 0.0, series.longest_stall_s(rows))
    return Check.at_most("longest_stall_s", None if worst is None else round(worst, 2),
                         STALL_S * run["time_scale"], "s",
                         "longest time in which a running engine committed nothing")


def _span(found):
    """From the first join to the last leave."""
    begin = next((p.begin for p in found if p.cause == "join"), 0.0)
    end = max((p.begin for p in found if p.cause == "leave"), default=begin)
    return begin, end
