# SPDX-License-Identifier: GPL-2.0-or-later
"""Checks and measures that every scenario shares. Pure functions of a run's recorded files."""
from dataclasses import dataclass, field

from harness.record.schema import Check

from . import series

# A sample that comes later than this after the one before leaves a hole that could hide anything.
MAX_SAMPLE_GAP_S = 2.0
# A running engine whose last report is older than this is not measured any more.
MAX_REPORT_AGE_MS = 3000
# Clocks of the history and of the samples are read by two processes.
CLOCK_SLACK_S = 0.5

# Rows of the history that change how many CPUs a VM holds.
CPU_EVENTS = ("grant", "release", "lend", "force", "join", "leave")
# By which a guest gives CPUs back: unplugged; lent or parked.
GIVE_EVENTS = ("release", "lend")
# That are about memory; of a brokering there is one for each VM.
MEM_EVENTS = ("mem_offer", "mem_demand", "mem_release", "mem_revoke")
BROKER_EVENT = "broker"


@dataclass
class Verdict:
    """Checks of one run, and the figures measured on the way."""
    checks: list
    convergence_ms: list = field(default_factory=list)
    details: dict = field(default_factory=dict)


def outcome_checks(run):
    """What the engines say of themselves at their end: no failed transaction, nothing lost.

    A VM without a final line, or one that did not verify its records, counts as unknown, and
    unknown is not zero.
    """
    return [Check.equal("failed_transactions", total(run, "failed"), 0, "transactions",
                        "transactions that an engine gave up, over all VMs"),
            Check.equal("lost_updates", total(run, "lost_updates"), 0, "updates",
                        "committed updates missing from the records at the end, over all VMs")]


def total(run, name):
    """Sum of a field of the final lines of all VMs that were started; None if one lacks it. A VM
    that left and came again has a line for each time."""
    told = [result for vm in run["vms"]
            for result in (run["results"].get(vm), *run.get("earlier_results", {}).get(vm, ()))]
    values = [(result or {}).get(name) for result in told]
    if not values or any(not isinstance(v, int) or isinstance(v, bool) for v in values):
        return None
    return sum(values)


def sampling_checks(samples, begin, end):
    """The time series has no hole, and each engine that runs is heard of."""
    gap = series.largest_gap_s(sorted({s.t_s for s in samples}), begin, end)
    silent = [s for s in samples if begin <= s.t_s <= end and s.workers > 0 and
              s.state == "running" and
              (s.report_age_ms is None or s.report_age_ms > MAX_REPORT_AGE_MS)]
    return [Check.at_most("sampling_gap_s", _rounded(gap), MAX_SAMPLE_GAP_S, "s",
                          "longest time without a sample"),
            Check.equal("unreported_samples", len(silent), 0, "samples",
                        f"samples whose guest report is older than {MAX_REPORT_AGE_MS} ms")]


def reason_checks(samples, events):
    """Each change of what a VM holds is in the history, and each such row says why."""
    unexplained = len(unexplained_changes(samples, events))
    rows = [e for e in events if e.event in CPU_EVENTS]
    unreasoned = sum(not e.reason.strip() for e in rows)
    changes = sum(len(series.runs_of(rows_of, lambda s: s.cpus_held)) - 1
                  for rows_of in series.by_vm(samples).values())
    return [Check.equal("changes_not_in_history", unexplained, 0, "changes",
                        f"of {changes} changes of cpus_held in the samples"),
            Check.equal("history_without_reason", unreasoned if rows else None, 0, "rows",
                        f"of {len(rows)} rows about CPUs in the history")]


def unexplained_changes(samples, events):
    """[(vm, t_s, from, to)] of changes of cpus_held with no row of the history near them."""
    times = {}
    for e in events:
        if e.event in CPU_EVENTS:
            times.setdefault(e.vm, []).append(e.t_s)
    lost = []
    for vm, rows in series.by_vm(samples).items():
        for a, b in zip(rows, rows[1:]):
            if a.cpus_held != b.cpus_held and not any(
                    a.t_s - CLOCK_SLACK_S <= t <= b.t_s + CLOCK_SLACK_S
                    for t in times.get(vm, [])):
                lost.append((vm, b.t_s, a.cpus_held, b.cpus_held))
    return lost


def latencies_ms(events, *kinds):
    """How long each CPU took, one value per CPU: a request for three counts three times."""
    return [e.total_ms for e in events if e.event in kinds and e.total_ms is not None
            for _ in range(max(1, e.cpus))]


def latency_checks(events):
    """Each add and each remove has its latency.

    A CPU whose core had been taken before is given back with 0 CPUs: nothing has to be done, and
    there is nothing to be timed.
    """
    checks = []
    events = [e for e in events if e.cpus or e.total_ms is not None]
    for kinds, name in ((("grant",), "cpu_adds"), (GIVE_EVENTS, "cpu_removes")):
        cpus = sum(max(1, e.cpus) for e in events if e.event in kinds)
        timed = len(latencies_ms(events, *kinds))
        checks.append(Check.equal(f"{name}_timed", timed if cpus else None, cpus, "CPUs",
                                  f"latency recorded for each of {cpus} CPUs"))
    return checks


def idle_core_share(samples, cores, begin, end):
    """Fraction of the core time in [begin, end] that no VM held."""
    inside = [(t, vms) for t, vms in series.ticks(samples) if begin <= t <= end]
    span = idle = 0.0
    for (t, vms), (after, _) in zip(inside, inside[1:]):
        held = sum(s.cpus_held for s in vms.values() if s.state == "running")
        span += after - t
        idle += max(0, cores - held) * (after - t)
    return idle / (cores * span) if span > 0 else None


def _rounded(value, digits=3):
    return None if value is None else round(value, digits)
