# SPDX-License-Identifier: GPL-2.0-or-later
"""Verdict of `contention`: the engine gives a socket back while contention makes it useless (paper
4.4, figures 9 and 10).

The reports of the engine carry theta; where it changes, a phase begins: low, high, low again. In
the high phase the engine first still has all CPUs, and perhaps once more when it tries them: the
throughput then is what that with fewer is compared with. All throughput is that of a run in which
all CPU time came that was due (delivery.py), at even speed of the machine.
"""
from dataclasses import dataclass

from harness.judge import delivery, engine_series, series, smooth
from harness.judge.checks import (Verdict, idle_core_share, latency_checks, outcome_checks,
                                  reason_checks, sampling_checks)
from harness.record.schema import Check

HALF_PCT = 95.0         # of the throughput of all CPUs, with those that are left: noise is 5%
AGAIN_PCT = 85.0        # of the throughput of the first phase, in the last
REACT_S = 8.0           # to have given back what does not pay, or taken again what does
END_SHARE = 0.4         # of a phase, its end: decided
MIN_REPORTS = 3


@dataclass
class Phase:
    theta: float
    reports: list

    @property
    def begin(self):
        return self.reports[0].t_s - self.reports[0].seconds

    @property
    def end(self):
        return self.reports[-1].t_s

    def last(self):
        """Its reports after it has settled."""
        since = self.end - END_SHARE * (self.end - self.begin)
        return [r for r in self.reports if r.t_s - r.seconds >= since]


def phases(told):
    return [Phase(theta, rows) for theta, rows in series.runs_of(told, lambda r: r.theta)]


def first_change(rows, begin, end, is_wanted):
    """When the number of CPUs held first became one that is wanted; None: not in [begin, end]."""
    return next((s.t_s for s in rows if begin <= s.t_s <= end and is_wanted(s.cpus_held)), None)


def evaluate(run, samples, events):
    rows = series.by_vm(samples).get(run["vms"][0], [])
    told = engine_series.reports(rows)
    cores, half = run["host"]["cores"], run["host"]["cores"] // run["host"]["sockets"]
    found = phases(told)
    checks = [Check.equal("phases", len(found), 3, "phases", "theta low, high, and low again")]
    details = {"phases": []}
    if len(found) == 3:
        more, details = _story(run, rows, found, cores, half)
        checks += more
    begin, end = (told[0].t_s, told[-1].t_s) if told else (0.0, 0.0)
    checks += outcome_checks(run) + reason_checks(samples, events) + latency_checks(events)
    checks += sampling_checks(samples, begin, end)
    idle = idle_core_share(samples, cores, begin, end)
    return Verdict(checks, [], {**details, "load": run["load"],
                                "idle_core_pct": None if idle is None else round(100 * idle, 1)})


def _story(run, rows, found, cores, half):
    low, high, again = found
    bound_s = REACT_S * run["time_scale"]
    few = first_change(rows, high.begin, high.end, lambda n: n <= half)
    back = first_change(rows, again.begin, again.end, lambda n: n == cores)
    # Whole intervals with all CPUs, none of which began before theta changed.
    with_all = [r for before, r in zip(high.reports, high.reports[1:])
                if before.cpus == r.cpus == cores]
    usual = smooth.mean_speed(rows)
    told = {name: engine_series.together(intervals, usual, MIN_REPORTS) for name, intervals in (
        ("low", low.last()), ("high_all", with_all), ("high_few", high.last()),
        ("again", again.last()))}
    tps = {name: of_phase.even_tps for name, of_phase in told.items()}
    missing = {name: of_phase.missing_pct for name, of_phase in told.items()}
    checks = [
        Check.equal("cpus_low", _cpus(low), cores, "CPUs", "held at low contention: all there are"),
        Check.at_most("cpus_high", _cpus(high), half, "CPUs",
                      "held at high contention, once settled: those of a socket"),
        Check.equal("cpus_again", _cpus(again), cores, "CPUs",
                    "held when contention is low again"),
        Check.at_least("tps_high_pct", engine_series.percent(tps["high_few"], tps["high_all"])
                       if few else None, HALF_PCT, "%", "throughput at high contention with the "
                       "CPUs of a socket, of that with all of them in the same phase").of_work(),
        Check.at_least("tps_again_pct", engine_series.percent(tps["again"], tps["low"]), AGAIN_PCT,
                       "%", "throughput at low contention, last phase of the first").of_work(),
        delivery.check(missing.values()),
        Check.at_most("given_back_s", _since(few, high), bound_s, "s",
                      "from the rise of contention until a socket was given back"),
        Check.at_most("taken_again_s", _since(back, again), bound_s, "s",
                      "from its fall until all CPUs were held"),
    ]
    return checks, {
        "tps": tps,
        "phases": [{"t_s": round(p.begin, 3), "end_s": round(p.end, 3), "theta": p.theta,
                    "cpus": _cpus(p)} for p in found],
        "cpu_missing_pct": missing, "given_back_at_s": few, "taken_again_at_s": back}


def _cpus(phase):
    return engine_series.median([r.cpus for r in phase.last()], MIN_REPORTS)


def _since(t_s, phase):
    return None if t_s is None else round(max(0.0, t_s - phase.begin), 2)
