# SPDX-License-Identifier: GPL-2.0-or-later
"""Verdict of `rebalance`: VMs with more CPUs than there are cores (the paper on flexible resource
allocation, 8.2, figures 10 and 11).

The same loads are run twice, with cores that stay as they were given first and with cores that are
given anew where they are hot. What was used of each core comes from the host's kernel (cores.csv).

Other programs on the machine take CPU time from the cores. Throughput is that of a run in which all
CPU time came that was due (delivery.py), and a core is hot if it would have been.
"""
import statistics

from harness.judge import delivery, series, smooth
from harness.judge.checks import Verdict, outcome_checks, sampling_checks
from harness.record import cores
from harness.record.schema import Check

from .plan import MODES, REBALANCED, STATIC

HOT_PCT = 5.0           # of the hot oversubscribed core-intervals without rebalancing, at most
TPS_PCT = 115.0         # of the active VMs' throughput without
P99_PCT = 50.0          # of their p99 without
LEAST_HOT = 10          # core-intervals without rebalancing: what is at stake
SETTLE_WINDOWS = 4      # after the load has changed, in which VMs may move more than once
SAME_SHARE = 0.9        # of a window: clocks are read by two processes
MOVE_EVENT = "rebalance"


def steps(run, mode, turn, action):
    return [s for s in run["steps"] if s["action"] == action and s.get("variant") == mode and
            s.get("turn") == turn]


def span(run, mode, turn, first, last):
    """[begin, end] of a part of a run, None if it was not run whole."""
    begin, end = steps(run, mode, turn, first), steps(run, mode, turn, last)
    return (begin[0]["t_s"], end[-1]["t_s"]) if begin and end else None


def hot_intervals(run, mode, turn):
    """{t_s: number of hot oversubscribed cores} of the intervals of the bursts; None: not run."""
    found = span(run, mode, turn, "burst", "bursts end")
    rows = run.get("cores") or []
    if found is None or not rows:
        return None
    r, counts = run["rebalance"], {}
    for row in rows:
        if found[0] < row.t_s <= found[1]:
            counts[row.t_s] = counts.get(row.t_s, 0) + cores.is_hot(row, r["hot"], r["active"])
    return counts


def skew(run, samples, mode, turn, usual):
    """What the active VMs came to with heavy skew, after their cores could have been given anew."""
    found = span(run, mode, turn, "skew", "skew end")
    if found is None:
        return {}
    step = steps(run, mode, turn, "skew")[0]
    rows = {vm: [s for s in samples if s.vm == vm and found[0] <= s.t_s <= found[1] and
                 s.workers > 0] for vm in step["active"]}
    given = {vm: delivery.over(of_vm) for vm, of_vm in rows.items()}
    offered = run["rebalance"]["skew"] * run["rebalance"]["capacity_ps"]
    tps = [full_tps(smooth.overall(rows[vm], usual), given[vm], offered) for vm in rows]
    told = {"cpu_missing_pct": delivery.missing_pct(delivery.total(given.values())),
            "tps": None if not tps or None in tps else round(sum(tps), 1),
            "shared_cores": step["shared_cores"], "active": step["active"]}
    for name in ("p50_us", "p95_us", "p99_us"):
        values = [getattr(s, name) for seen in rows.values() for s in seen]
        told[name] = series.percentile([v for v in values if v], 0.5)
    return told


def full_tps(tps, given, offered):
    """Throughput, had all CPU time come that was due; no more than what arrived, unless it was."""
    full = None if given is None else given.full(tps)
    return None if full is None else min(full, max(tps, offered))


def bursts_missing_pct(run, samples, mode, turn):
    """CPU time that was due in the bursts and did not come, of all VMs together."""
    found = span(run, mode, turn, "burst", "bursts end")
    return None if found is None else delivery.missing_pct(delivery.total(
        delivery.over([s for s in rows if found[0] <= s.t_s <= found[1]])
        for rows in series.by_vm(samples).values()))


def core_means(run, mode, turn):
    """{core: mean use} with heavy skew, without its first windows (figure 11)."""
    found = span(run, mode, turn, "skew", "skew end")
    sums = {}
    if found is None:
        return {}
    begin = found[0] + SETTLE_WINDOWS * run["rebalance"]["window_s"]
    for row in run.get("cores") or []:
        if begin < row.t_s <= found[1]:
            sums.setdefault(row.core, []).append(row.busy)
    return {core: statistics.mean(values) for core, values in sorted(sums.items())}


def measure(run, samples):
    """{mode: [{hot, hot_intervals, intervals, skew, core_means} by seed]}"""
    usual = smooth.mean_speed(samples)
    told = {}
    for mode in MODES:
        told[mode] = []
        for turn in range(len(run["rebalance"]["seeds"])):
            counts = hot_intervals(run, mode, turn)
            told[mode].append({
                "hot": None if counts is None else sum(counts.values()),
                "hot_intervals": None if counts is None else sum(c > 0 for c in counts.values()),
                "intervals": None if counts is None else len(counts),
                "cpu_missing_pct": bursts_missing_pct(run, samples, mode, turn),
                "skew": skew(run, samples, mode, turn, usual),
                "core_means": core_means(run, mode, turn)})
    return told


def percents(told, value):
    """Of each seed: the value with rebalancing, of that without, in percent. None: not measured."""
    found = []
    for without, with_it in zip(told[STATIC], told[REBALANCED]):
        a, b = value(with_it), value(without)
        found.append(None if a is None or not b else round(100.0 * a / b, 1))
    return found


def median(values):
    return None if not values or None in values else statistics.median(values)


def too_often(run, events):
    """Moves of VMs in less than a window after the one before, when the load has not changed."""
    window = run["rebalance"]["window_s"]
    changes = [s["t_s"] for s in run["steps"]]
    count, last = 0, {}
    for e in sorted(events, key=lambda e: e.t_s):
        if e.event != MOVE_EVENT or not e.vm:
            continue
        before = last.get(e.vm)
        last[e.vm] = e.t_s
        calm = not any(0 <= e.t_s - t <= SETTLE_WINDOWS * window for t in changes)
        # Rows of one look have the same time.
        if before is not None and calm and 0.05 < e.t_s - before < SAME_SHARE * window:
            count += 1
    return count


def evaluate(run, samples, events):
    r = run["rebalance"]
    told = measure(run, samples)
    hot = percents(told, lambda m: m["hot"])
    tps = percents(told, lambda m: m["skew"].get("tps"))
    p99 = percents(told, lambda m: m["skew"].get("p99_us"))
    n = len(r["seeds"])
    # Later seeds begin where rebalancing has left the VMs: then there may be no bad start any more.
    starts = [m["skew"].get("shared_cores", 0) for m in told[STATIC] + told[REBALANCED][:1]]
    checks = [
        Check.at_least("hot_static", min((m["hot"] for m in told[STATIC]
                                          if m["hot"] is not None), default=None), LEAST_HOT,
                       "intervals", "of a hot oversubscribed core without rebalancing, in the "
                       "bursts of the seed with the fewest: what is at stake").of_work(),
        Check.at_most("hot_pct", median(hot), HOT_PCT, "%",
                      f"of them with rebalancing, median of {n} seeds").of_work(),
        Check.at_least("skew_shared_cores", min(starts, default=None), 2 * r["cpus"], "cores",
                       "that two active VMs share when heavy skew begins, the fewest; with "
                       "rebalancing for the first seed"),
        Check.at_least("tps_pct", median(tps), TPS_PCT, "%",
                       "throughput of the active VMs with heavy skew, of that without "
                       f"rebalancing, median of {n} seeds").of_work(),
        Check.at_most("p99_pct", median(p99), P99_PCT, "%", "the same of their p99").of_work(),
        delivery.check(pct for of_mode in told.values() for m in of_mode
                       for pct in (m["cpu_missing_pct"], m["skew"].get("cpu_missing_pct"))),
        Check.equal("moves_too_often", too_often(run, events), 0, "moves",
                    "of a VM less than a window after the one before, its load unchanged")]
    checks += outcome_checks(run)
    begin = min((s["t_s"] for s in run["steps"] if s["action"] == "burst"), default=0.0)
    end = max((s["t_s"] for s in run["steps"] if s.get("variant")), default=0.0)
    checks += sampling_checks(samples, begin, end)
    return Verdict(checks, [], {
        "modes": told, "rebalance": r, "hot_pct_by_seed": hot, "tps_pct_by_seed": tps,
        "p99_pct_by_seed": p99,
        "moves": sum(e.event == MOVE_EVENT and bool(e.vm) for e in events)})
