# SPDX-License-Identifier: GPL-2.0-or-later
"""Verdict of `broker`: whose memory goes when a warm database grows (the paper on flexible
resource allocation, 8.1, figures 8 and 9).

Each round runs the same story under another policy: a cold database holds most of the pool and has
nothing to do, a warm one begins to grow; later they change places, and in the end both work.
Rounds are compared with one another. Moments are steps of the run; everything else is read from the
samples, the history and the histograms that guests have sent.
"""
from dataclasses import dataclass
from typing import Optional

from harness.judge import series, smooth
from harness.judge.checks import BROKER_EVENT, MEM_EVENTS, Verdict, outcome_checks, sampling_checks
from harness.record.schema import Check

from . import plan

GAIN_PCT = 110.0            # of the best black-box policy's median, the least (the paper: 114)
RESTART_PCT = 95.0          # of the cold VM's throughput after its restart under proportional
HISTOGRAM_BYTES = 11 * 1024
COOL_DOWN_SHARE = 0.95      # of a cool-down: clocks are read by two processes
BUCKET_BYTES, HEAD_BYTES = 16, 16
SAME_S = 0.5
MIB = 1 << 20


@dataclass
class Moments:
    """Of a round, in seconds. None: it did not come to that."""
    begin: Optional[float] = None   # the round's VMs start
    idle: Optional[float] = None    # the cold VM has nothing to do any more
    ramp: Optional[float] = None    # the warm VM may grow
    restart: Optional[float] = None     # the cold VM works again, the warm one rests
    both: Optional[float] = None    # both work
    end: Optional[float] = None     # engines are told to end


def moments(run, variant):
    at = {s["action"]: s["t_s"] for s in run["steps"] if s.get("variant") == variant}
    return Moments(*(at.get(name) for name in Moments.__dataclass_fields__))


def between(samples, vm, begin, end):
    """Samples of a VM whose engine runs, in a span of time; none if one of its ends is unknown."""
    if begin is None or end is None:
        return []
    return [s for s in samples if s.vm == vm and begin <= s.t_s <= end and
            s.state == "running" and s.workers > 0]


def measure(run, samples, variant):
    """What a round came to."""
    at = moments(run, variant)
    b = run["broker"]
    ramp = between(samples, plan.WARM, at.ramp, at.restart)
    points = smooth.moving_average(ramp, b["window_s"])
    rates = [tps for _, tps in points]
    before = between(samples, plan.COLD, at.idle, at.ramp)
    again = between(samples, plan.COLD, at.restart, at.both)
    both = {vm: smooth.overall(between(samples, vm, at.both, at.end))
            for vm in (plan.COLD, plan.WARM)}
    return {
        "moments": {k: v if v is None else round(v, 3) for k, v in at.__dict__.items()},
        "median_tps": _rounded(series.percentile(rates, 0.5)),
        "p95_tps": _rounded(series.percentile(rates, 0.95)),
        "overall_tps": _rounded(smooth.overall(ramp)),
        "restart_tps": _rounded(smooth.overall(again)),
        "ramp_reads": _rounded(reads(ramp), 2), "restart_reads": _rounded(reads(again), 2),
        "both_tps": {vm: _rounded(tps) for vm, tps in both.items()},
        "cold_held_mib": _held(before[-1:]), "warm_held_mib": _held(ramp[-1:]),
        "warm_held_first_mib": _held(ramp[:1]), "samples": len(points)}


def reads(rows):
    """Records read from disk for each transaction: what does not depend on the machine's speed."""
    rows = [s for s in rows if s.cold_reads is not None and s.committed is not None]
    done = rows[-1].committed - rows[0].committed if rows else 0
    return (rows[-1].cold_reads - rows[0].cold_reads) / done if done > 0 else None


def _held(rows):
    return round(rows[0].mem_held_bytes / MIB, 1) if rows else None


def _rounded(value, digits=1):
    return None if value is None else round(value, digits)


def evaluate(run, samples, events):
    b = run["broker"]
    told = {r["variant"]: measure(run, samples, r["variant"]) for r in b["rounds"]}
    subject = told.get(plan.SUBJECT) or {}
    boxes = {name: told[name] for name in plan.BLACK_BOXES if name in told}
    checks = [
        Check.equal("rounds", sum(m["median_tps"] is not None and m["restart_tps"] is not None
                                  for m in told.values()), len(plan.POLICIES), "rounds",
                    "policies of which ramp-up and restart were seen"),
        Check.at_least("cold_held_mib", min((m["cold_held_mib"] for m in told.values()
                                             if m["cold_held_mib"] is not None), default=None),
                       b["pool_mib"] / 2, "MiB", "that the cold VM held before the ramp-up, the "
                       "least of all rounds: what is at stake"),
        Check.at_least("gain_pct", percent(subject.get("median_tps"),
                                           best(boxes, "median_tps")), GAIN_PCT, "%",
                       "median throughput of the warm VM during ramp-up, of that under the best "
                       "of the other policies"),
        Check.at_least("restart_pct", percent(subject.get("restart_tps"),
                                              told.get("proportional", {}).get("restart_tps")),
                       RESTART_PCT, "%", "throughput of the cold VM after its restart, of that "
                       "under proportional")]
    checks += _broker_checks(b, events, told) + _histogram_checks(b)
    checks += _memory_checks(events) + outcome_checks(run)
    checks += _sampling_checks(samples, told)
    return Verdict(checks, [], {
        "rounds": told, "broker": {**b, "histograms": len(b["histograms"])},
        "p95_gain_pct": percent(subject.get("p95_tps"), best(boxes, "p95_tps")),
        "brokerings": {name: len(brokerings(events, m)) for name, m in told.items()},
        "largest_histogram_bytes": largest_histogram(b)})


def best(boxes, name):
    return max((m[name] for m in boxes.values() if m[name] is not None), default=None)


def percent(part, whole):
    return None if part is None or not whole else round(100.0 * part / whole, 1)


def brokerings(events, told):
    """[t_s] of the brokerings between ramp-up and end of a round. One has a row for each VM, all of
    the same moment."""
    begin, end = told["moments"]["ramp"], told["moments"]["end"]
    if begin is None:
        return []
    times = []
    for e in sorted(events, key=lambda e: e.t_s):
        if e.event == BROKER_EVENT and begin <= e.t_s <= (end or e.t_s) and \
                (not times or e.t_s - times[-1] > SAME_S):
            times.append(e.t_s)
    return times


def _broker_checks(b, events, told):
    times = {name: brokerings(events, m) for name, m in told.items()}
    gaps = [y - x for seen in times.values() for x, y in zip(seen, seen[1:])]
    return [
        Check.at_least("brokerings", min(map(len, times.values()), default=None), 1, "times",
                       "memory was brokered after the ramp-up began, in the round with the fewest"),
        Check.at_least("cool_down_s", round(min(gaps), 2) if gaps else None,
                       round(COOL_DOWN_SHARE * b["cool_down_s"], 2), "s",
                       "shortest time between two of them in a round")]


def histogram_bytes(histogram):
    """On the wire."""
    return HEAD_BYTES + BUCKET_BYTES * len(histogram["buckets"])


def largest_histogram(b):
    return max(map(histogram_bytes, b["histograms"]), default=None)


def _histogram_checks(b):
    subject = [h for h in b["histograms"] if h["variant"] == plan.SUBJECT]
    return [
        Check.at_least("histograms", len({h["vm"] for h in subject}), 2, "VMs",
                       "whose guests said in the first round what their memory is worth"),
        Check.at_most("histogram_bytes", largest_histogram(b), HISTOGRAM_BYTES, "bytes",
                      "the largest of them on the wire")]


def _memory_checks(events):
    rows = [e for e in events if e.event in (*MEM_EVENTS, BROKER_EVENT)]
    revoked = sum(e.bytes for e in events if e.event == "mem_revoke")
    return [
        Check.equal("revoked_mib", round(revoked / MIB, 1) if rows else None, 0, "MiB",
                    "memory that the host had to take by force"),
        Check.equal("memory_without_reason",
                    sum(not e.reason.strip() for e in rows) if rows else None, 0, "rows",
                    f"of {len(rows)} rows about memory in the history")]


def _sampling_checks(samples, told):
    """Those of all scenarios, over each round from its ramp-up to its end; the worst counts."""
    found = [sampling_checks(samples, m["moments"]["ramp"], m["moments"]["end"])
             for m in told.values() if m["moments"]["ramp"] is not None and
             m["moments"]["end"] is not None]
    return [max(same, key=lambda c: float("inf") if c.value is None else c.value)
            for same in zip(*found)]
