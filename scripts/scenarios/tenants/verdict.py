# SPDX-License-Identifier: GPL-2.0-or-later
"""Verdict of `tenants`: a VM per tenant against a partition per tenant in one engine.

For each number of tenants and each turn, all VMs together over the one engine, which ran at the
same time; the median over the turns counts. Throughput is that of a slice in which all CPU time
came that was due (delivery.py).
"""
import statistics

from harness.judge import delivery, slices
from harness.judge.checks import Verdict, outcome_checks
from harness.record.schema import Check

ENGINE, VMS = "engine", "vms"
TENANTS = (1, 2, 3, 4)
WITHIN_PCT = 5.0


def ratios(sums, tenants):
    """Throughput of the VMs over that of the engine, turn by turn."""
    turns = sorted({turn for (_, t, _, turn) in sums if t == tenants})
    pairs = [(sums.get((VMS, tenants, None, turn)), sums.get((ENGINE, tenants, None, turn)))
             for turn in turns]
    return [vms / engine for vms, engine in pairs if vms and engine]


def evaluate(run, samples, _events):
    sums = slices.slice_tps(samples, slices.full_tps)
    missing = slices.missing_pct(samples)
    found = slices.medians(sums)
    checks, points = [], []
    for tenants in TENANTS:
        seen = ratios(sums, tenants)
        off_pct = 100 * (statistics.median(seen) - 1) if seen else None
        checks.append(Check.at_most(
            f"tenants_{tenants}_difference_pct",
            None if off_pct is None else round(abs(off_pct), 2), WITHIN_PCT, "%",
            f"{tenants} VMs against one engine with {tenants} partitions, median of "
            f"{len(seen)} turns" + ("" if off_pct is None else f" ({off_pct:+.1f} %)")).of_work())
        points.append({"tenants": tenants, "turns": len(seen),
                       "difference_pct": None if off_pct is None else round(off_pct, 2),
                       "spread_pct": round(50 * (max(seen) - min(seen)), 2) if seen else None,
                       "cpu_missing_pct": {name: missing.get((name, tenants, None))
                                           for name in (ENGINE, VMS)},
                       **{name: round(found[(name, tenants, None)][0], 1)
                          for name in (ENGINE, VMS) if (name, tenants, None) in found}})
    checks.append(delivery.check(missing.values()))
    return Verdict(checks + outcome_checks(run), [], {"points": points})
