# SPDX-License-Identifier: GPL-2.0-or-later
"""Verdict of `place`: what looking ahead is worth (the paper on flexible resource allocation, 8.3,
figures 12 to 14).

Two placers are compared on the same VMs: a run is one set of traces, over-subscription and seed.
"Times fewer" is the median over the runs of a set of traces in which the plain placer had something
to avoid; a placer that had none counts as if it had one. With several sets, the worst counts.
The two placers differ in look-ahead alone, as those do by which move costs and room for new VMs are
judged differ in these alone.
"""
from statistics import median

from harness.judge.checks import Verdict
from harness.record.schema import Check

from .plan import COMBINATIONS, ONE_RATIO, PLAIN, RATIOS, SUBJECT

VIOLATIONS_TIMES = 1.83     # the paper's averages
FAILOVERS_TIMES = 1.67
DISRUPTION_LESS_PCT = 30.0
# "Without a noticeable reduction in overall cluster capacity".
ROOM = 0.99


def index(runs):
    return {(r["traces"], r["ratio"], r["seed"], r["as"]): r for r in runs}


def times(place, traces, name):
    """Median over ratios and seeds of how many times fewer SUBJECT has; None: nothing to avoid."""
    runs = index(place["runs"])
    found = []
    for ratio in RATIOS:
        for seed in place["seeds"]:
            plain = runs.get((traces, ratio, seed, PLAIN))
            ours = runs.get((traces, ratio, seed, SUBJECT))
            if plain and ours and plain[name]:
                found.append(plain[name] / max(1, ours[name]))
    return median(found) if found else None


def mean(place, traces, ratio, placer, name):
    """Over the seeds; None: there is no run."""
    found = [r[name] for r in place["runs"]
             if (r["traces"], r["ratio"], r["as"]) == (traces, ratio, placer)]
    return sum(found) / len(found) if found else None


def less_pct(place, traces, ratio, placers, name):
    """By how much less the second placer has; None: the first has none."""
    before, after = (mean(place, traces, ratio, placer, name) for placer in placers)
    return None if not before or after is None else 100 * (1 - after / before)


def new_failovers(place, placer):
    return sum(r["failovers_new"] for r in place["runs"]
               if r["ratio"] == ONE_RATIO and r["as"] == placer)


def room(place, traces):
    """The least part of the databases of a ratio that SUBJECT finds hosts for."""
    found = [(mean(place, traces, ratio, SUBJECT, "admitted"),
              mean(place, traces, ratio, SUBJECT, "refused")) for ratio in RATIOS]
    return min((1 - refused / all_ for all_, refused in found if all_), default=None)


def worst(values):
    values = list(values)
    return None if not values or None in values else min(values)


def evaluate(run, _samples, _events):
    place = run["place"]
    sets = place["traces"]
    without = new_failovers(place, "prv+mc")
    expected = len(sets) * len(place["seeds"]) * (2 * (len(RATIOS) - 1) + len(COMBINATIONS))
    each = {t: {name: _rounded(times(place, t, name)) for name in ("violations", "failovers")}
            for t in sets}
    disruption = {t: _rounded(less_pct(place, t, ONE_RATIO, ("prv+aru", SUBJECT), "disruption_s"))
                  for t in sets}
    checks = [
        Check.at_least("violations_times_fewer", worst(v["violations"] for v in each.values()),
                       VIOLATIONS_TIMES, "times", "violations without look-ahead over those with "
                       "all techniques, median of ratios and seeds, of the worst set of traces"),
        Check.at_least("failovers_times_fewer", worst(v["failovers"] for v in each.values()),
                       FAILOVERS_TIMES, "times", "the same of failovers"),
        Check.at_least("disruption_less_pct", worst(disruption.values()), DISRUPTION_LESS_PCT, "%",
                       "time of failovers of active databases with move costs, how much less than "
                       f"without (both prv with aru, over-subscription {ONE_RATIO:g})"),
        Check.at_least("room", worst(_rounded(room(place, t)) for t in sets), ROOM, "",
                       "databases that all techniques find hosts for, as a part of all, the "
                       "least of all ratios"),
        Check.equal("runs", len(index(place["runs"])), expected, "runs", "simulated clusters")]
    if without:
        checks.append(Check.at_most(
            "new_failovers_part", _rounded(new_failovers(place, SUBJECT) / without), 0.99, "",
            "failovers of VMs younger than a day with aru, as a part of those without (both prv "
            f"with mc, over-subscription {ONE_RATIO:g}); not judged if there are none without"))
    return Verdict(checks, [], {
        "times_fewer": each, "disruption_less_pct": disruption,
        "seeds": place["seeds"], "new_failovers": {c: new_failovers(place, c)
                                                   for c in COMBINATIONS},
        "curves": {t: {p: {name: [[r, mean(place, t, r, p, name)] for r in RATIOS]
                           for name in ("violations", "failovers", "refused")}
                       for p in (PLAIN, SUBJECT)} for t in sets},
        "combinations": {t: {p: {name: mean(place, t, ONE_RATIO, p, name) for name in (
            "violations", "failovers", "failovers_new", "disruption_s", "failover_s", "refused")}
            for p in COMBINATIONS} for t in sets}})


def _rounded(value):
    return None if value is None else round(value, 3)
