# SPDX-License-Identifier: GPL-2.0-or-later
"""Verdict of `scale`: one VM grows to the whole host and shrinks back (paper 4.1, figure 3).

A plateau is a stretch of time in which the VM holds the same number of CPUs; its throughput is
what the engine committed from the first to the last report in its interior, had all CPU time come
that was due then (delivery.py), at even speed: divided by how fast the machine's CPUs were
(speed.py), relative to the whole run. A CPU that is held and does no work, and a core that
the VM holds by the agent's word but has no thread on, make their plateau too low.

Plateaus must be proportional to the CPUs held, with the rate per CPU fitted from the same run, and
the way down must mirror the way up.
"""
from dataclasses import dataclass

from harness.judge import delivery, engine_series, series, smooth
from harness.judge.checks import (Verdict, idle_core_share, latency_checks, outcome_checks,
                                  reason_checks, sampling_checks)
from harness.record.schema import Check

PROPORTIONAL_PCT = 10.0
SYMMETRY_PCT = 10.0
# Interior of a plateau: a CPU counts as held before the guest has it online, and no longer works
# for a while before it counts as given back.
SETTLE_SHARE = 0.3
TRIM_SHARE = 0.2
MIN_INTERIOR_RATES = 3


@dataclass
class Plateau:
    begin: float
    end: float
    cpus: int
    way: str                # "up" or "down"; the top belongs to both and is called "up"
    of: engine_series.Throughput    # in its interior


def plateaus(rows, min_s):
    """The plateaus of one VM. Stretches shorter than min_s are steps on the way, not plateaus."""
    active = [s for s in rows if s.state == "running" and s.driver and s.workers > 0]
    usual, clock = smooth.mean_speed(active), delivery.Clock(rows)
    found = []
    for cpus, stretch in series.runs_of(active, lambda s: s.cpus_held):
        begin, end = stretch[0].t_s, stretch[-1].t_s
        if end - begin < min_s:
            continue
        inner = _interior(stretch, begin, end)
        found.append(Plateau(begin, end, cpus, "up", engine_series.together(
            engine_series.rates(inner, clock), usual, MIN_INTERIOR_RATES)))
    top = max(range(len(found)), key=lambda i: found[i].cpus, default=0)
    for p in found[top + 1:]:
        p.way = "down"
    return found


def _interior(stretch, begin, end):
    span = end - begin
    return [s for s in stretch
            if begin + SETTLE_SHARE * span <= s.t_s <= end - TRIM_SHARE * span]


def evaluate(run, samples, events):
    vm = run["vms"][0]
    cores, startup = run["host"]["cores"], run["startup_cpus"]
    rows = series.by_vm(samples).get(vm, [])
    found = plateaus(rows, run["dwell_s"] / 2)
    rate = series.fit_rate([(p.cpus, p.of.even_tps) for p in found])
    checks = _shape_checks(found, cores, startup)
    checks += _proportion_checks(found, rate)
    checks.append(_symmetry_check(found, cores, startup))
    checks += outcome_checks(run) + reason_checks(samples, events) + latency_checks(events)
    checks.append(delivery.check(p.of.missing_pct for p in found))
    begin, end = (found[0].begin, found[-1].end) if found else (0.0, 0.0)
    checks += sampling_checks(samples, begin, end)
    idle = idle_core_share(samples, cores, begin, end)
    return Verdict(checks, [], {
        "tps_per_cpu": None if rate is None else round(rate, 1),
        "plateaus": [{"t_s": round(p.begin, 3), "end_s": round(p.end, 3), "cpus": p.cpus,
                      "way": p.way, "tps": p.of.tps, "even_tps": p.of.even_tps,
                      "error_pct": _error_pct(p, rate), "cpu_missing_pct": p.of.missing_pct}
                     for p in found],
        "idle_core_pct": None if idle is None else round(100 * idle, 1)})


def _error_pct(p, rate):
    if p.of.even_tps is None or not rate:
        return None
    return round(100.0 * (p.of.even_tps / (rate * p.cpus) - 1.0), 2)


def _shape_checks(found, cores, startup):
    """The VM really went from its startup set to the whole host and back, by single CPUs."""
    up = [p.cpus for p in found if p.way == "up"]
    down = [p.cpus for p in found if p.way == "down"]
    steps = cores - startup
    return [
        Check.equal("most_cpus_held", max(up, default=None), cores, "CPUs",
                    "plateau with the most CPUs: the whole host"),
        Check.equal("first_plateau", up[0] if up else None, startup, "CPUs", "the startup set"),
        Check.equal("last_plateau", (down or [None])[-1], startup, "CPUs",
                    "the startup set again"),
        Check.equal("plateaus_up", len(set(up) & set(range(startup, cores + 1))), steps + 1,
                    "plateaus", "each number of CPUs seen on the way up"),
        Check.equal("plateaus_down", len(set(down) & set(range(startup, cores))), steps,
                    "plateaus", "each number of CPUs seen on the way down"),
    ]


def _proportion_checks(found, rate):
    errors = [_error_pct(p, rate) for p in found]
    unknown = sum(e is None for e in errors)
    worst = max((abs(e) for e in errors if e is not None), default=None)
    # One plateau is proportional to anything: without a second size there is no proportion.
    if unknown or len({p.cpus for p in found}) < 2:
        worst = None
    return [Check.at_most("plateau_error_pct", worst, PROPORTIONAL_PCT, "%",
                          "plateau furthest from proportional to the CPUs held, "
                          f"{len(found)} plateaus").of_work()]


def _symmetry_check(found, cores, startup):
    up = {p.cpus: p.of.even_tps for p in found if p.way == "up"}
    down = {p.cpus: p.of.even_tps for p in found if p.way == "down"}
    worst = None
    for cpus in range(startup, cores):
        a, b = up.get(cpus), down.get(cpus)
        if not a or not b:
            worst = None
            break
        worst = max(worst or 0.0, 100.0 * abs(a - b) / ((a + b) / 2))
    return Check.at_most("symmetry_pct", None if worst is None else round(worst, 2), SYMMETRY_PCT,
                         "%", "largest difference between a plateau going up and the same "
                         "going down").of_work()
