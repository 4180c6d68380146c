# SPDX-License-Identifier: GPL-2.0-or-later
"""Verdict of `peak`: traffic doubles, and halves again (paper 4.5, figures 11 and 12).

Transactions arrive whether or not workers are free. Each report of the engine says how many arrived
in its interval and how many were committed; their ratio is what the paper's figures show, where the
work per transaction changes instead of the traffic: it stays at one if the engine keeps up, and
halves if double the traffic meets the same CPUs. A window is as long as the paper's reports: 1 s,
in the close-up 100 ms.
"""
from dataclasses import dataclass, replace

from harness.judge import engine_series, series
from harness.judge.checks import (Verdict, idle_core_share, latency_checks, outcome_checks,
                                  reason_checks, sampling_checks)
from harness.record.schema import Check

WINDOW_S = {False: 1.0, True: 0.1}      # by close-up
STEADY_PCT = 80.0       # of what arrived in a window, the least that was committed in it
CONTROL_SKIP_S = 1.0    # of the time before traffic, in which workers start
SERVED_PCT = 99.0       # of what arrived in the whole run
EDGE = 1.2              # rates that differ by less are the same


@dataclass
class Window:
    begin: float
    end: float
    arrived: float
    committed: float

    @property
    def pct(self):
        return engine_series.percent(self.committed, self.arrived)


def windows(told, length_s):
    """Reports put together until each is as long as a window (to within half a report)."""
    found, begin = [], None
    for r in told:
        if begin is None:
            begin, arrived, committed = r.t_s - r.seconds, 0.0, 0.0
        arrived += r.offered_ps * r.seconds
        committed += r.tps * r.seconds
        if r.t_s - begin >= length_s - r.seconds / 2:
            found.append(Window(begin, r.t_s, arrived, committed))
            begin = None
    return found


def loads(told, normal_ps):
    """[(is_double, reports)]: stretches of normal and of doubled traffic, in turn."""
    return series.runs_of(told, lambda r: r.offered_ps > normal_ps * EDGE)


def traffic(told):
    """The reports from when transactions arrive, without the first, that of before as well."""
    return [r for r in told if r.offered_ps][1:]


def control(told, length_s):
    """Windows of the time before transactions arrive, with their median in place of arrivals: the
    startup set at work without a pause, and no CPU exchanged. What falls short then is no doing of
    the exchange."""
    before = [r for r in told if not r.offered_ps and
              r.t_s - r.seconds - told[0].t_s >= CONTROL_SKIP_S]
    usual = engine_series.median([r.tps for r in before])
    return windows([replace(r, offered_ps=usual) for r in before], length_s) if usual else []


def pauses(rows, share):
    """[(begin, end)] in which the machine itself did not run all that it should (host_pause_ms).

    An emulated core that was at work when a CPU of the machine stood still is charged for that
    time; with a CPU share of 0.2 it rests for five times as long."""
    return [(before.t_s, s.t_s + s.host_pause_ms / 1000 / share)
            for before, s in zip(rows, rows[1:]) if s.host_pause_ms]


def evaluate(run, samples, events):
    load, scale = run["load"], run["time_scale"]
    rows = series.by_vm(samples).get(run["vms"][0], [])
    all_told = engine_series.reports(rows)
    told = traffic(all_told)
    startup, cores = run["startup_cpus"], run["host"]["cores"]
    close_up = load["close_up"]
    found = windows(told, WINDOW_S[close_up] * scale)
    normal = series.percentile([r.offered_ps for r in told], 0.1)
    peaks, calms = [], []
    for is_double, reports in (loads(told, normal) if told else []):
        (peaks if is_double else calms).append(reports)
    worst = min((w.pct for w in found), default=None)
    arrived = sum(w.arrived for w in found)
    before = all_told[:all_told.index(told[0])] if told else all_told
    unmoved = control(before, WINDOW_S[close_up] * scale)
    below = [w for w in found if w.pct < STEADY_PCT]
    still = pauses(rows, run["host"]["share"])
    checks = [
        Check.at_least("peaks", len(peaks), 2, "times", "traffic doubled"),
        Check.at_least("lowest_window_pct", worst, STEADY_PCT, "%",
                       f"committed of what arrived, in the worst of {len(found)} windows of "
                       f"{WINDOW_S[close_up] * scale:g} s"),
        Check.at_least("served_pct",
                       engine_series.percent(sum(w.committed for w in found), arrived),
                       SERVED_PCT, "%", "committed of what arrived, over the whole run"),
        Check.at_least("cpus_peak", min((_most(rows, p) for p in peaks), default=None),
                       startup + 1, "CPUs", "most held in a peak, the one with the fewest"),
        Check.at_most("cpus_normal", engine_series.median([_least(rows, c) for c in calms]),
                      startup, "CPUs", "fewest held between two peaks, median: given back"),
    ]
    begin, end = (told[0].t_s, told[-1].t_s) if told else (0.0, 0.0)
    checks += outcome_checks(run) + reason_checks(samples, events) + latency_checks(events)
    checks += sampling_checks(samples, begin, end)
    idle = idle_core_share(samples, cores, begin, end)
    return Verdict(checks, [], {
        "load": run["load"],
        "windows": len(found), "windows_below": len(below),
        "windows_below_paused": sum(any(b < w.end and w.begin < e for b, e in still)
                                    for w in below),
        "host_pauses": len(still),
        "control_windows": len(unmoved),
        "control_below": sum(w.pct < STEADY_PCT for w in unmoved),
        "window_s": WINDOW_S[close_up] * scale,
        "normal_ps": normal, "served_in_peaks_pct": [_served(p) for p in peaks],
        "longest_queue": max((r.queue for r in told if r.queue is not None), default=None),
        "peaks": [{"t_s": round(p[0].t_s - p[0].seconds, 3), "end_s": round(p[-1].t_s, 3),
                   "cpus": _most(rows, p)} for p in peaks],
        "idle_core_pct": None if idle is None else round(100 * idle, 1)})


def _held(rows, reports):
    begin, end = reports[0].t_s - reports[0].seconds, reports[-1].t_s
    return [s.cpus_held for s in rows if begin <= s.t_s <= end] or \
        [engine_series.cpus_at(rows, end) or 0]


def _most(rows, reports):
    return max(_held(rows, reports))


def _least(rows, reports):
    return min(_held(rows, reports))


def _served(reports):
    return engine_series.percent(sum(r.tps * r.seconds for r in reports),
                                 sum(r.offered_ps * r.seconds for r in reports))
