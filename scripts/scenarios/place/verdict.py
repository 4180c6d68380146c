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

from .plan import (COMBINATIONS, JUDGED_ARU, JUDGED_MC, ONE_RATIO, PAIRS_ARU, PAIRS_MC, PLAIN,
                   RATIOS, SUBJECT)

VIOLATIONS_TIMES = 1.83     # the paper's averages
FAILOVERS_TIMES = 1.67
DISRUPTION_LESS_PCT = 30.0
# "Without a noticeable reduction in overall cluster capacity".
ROOM = 0.99


def index(runs):
    return {(r["traces"], r["ratio"], r["seed"], r["as"]): r for r in runs}


def pairs(place, sets, placers):
    """The runs of two placers on the same VMs."""
    runs = index(place["runs"])
    for traces in sets:
        for ratio in RATIOS:
            for seed in place["seeds"]:
                found = [runs.get((traces, ratio, seed, placer)) for placer in placers]
                if all(found):
                    yield found


def times(place, traces, name, placers=(PLAIN, SUBJECT)):
    """Median over ratios and seeds of how many times fewer the second placer has; None: the first
    has none."""
    found = [before[name] / max(1, ours[name])
             for before, ours in pairs(place, [traces], placers) if before[name]]
    return median(found) if found else None


def less_pct(place, traces, placers, name):
    """By how much less the second placer has, median of ratios and seeds; None: the first has
    none."""
    found = [100 * (1 - after[name] / before[name])
             for before, after in pairs(place, [traces], placers) if before[name]]
    return median(found) if found else None


def total(place, sets, placer, name):
    return sum(r[name] for r in place["runs"] if r["traces"] in sets and r["as"] == placer)


def capacity_part(place, sets, placers):
    """Databases that the second placer finds hosts for, of those of the first: the least of all
    sets and ratios."""
    found = []
    for traces in sets:
        for ratio in RATIOS:
            runs = [(mean(place, traces, ratio, p, "admitted"),
                     mean(place, traces, ratio, p, "refused")) for p in placers]
            if None not in runs[0] + runs[1] and runs[0][0] > runs[0][1]:
                found.append((runs[1][0] - runs[1][1]) / (runs[0][0] - runs[0][1]))
    return min(found, default=None)


def mean(place, traces, ratio, placer, name):
    """Over the seeds; None: there is no run."""
    found = [r[name] for r in place["runs"]
             if (r["traces"], r["ratio"], r["as"]) == (traces, ratio, placer)]
    return sum(found) / len(found) if found else None


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
    without, with_aru = (sum(total(place, sets, pair[i], "failovers_new") for pair in PAIRS_ARU)
                         for i in (0, 1))
    expected = len(sets) * len(place["seeds"]) * len(RATIOS) * len(COMBINATIONS)
    each = {t: {name: _rounded(times(place, t, name)) for name in ("violations", "failovers")}
            for t in sets}
    disruption = {t: {before: _rounded(less_pct(place, t, (before, after), "disruption_s"))
                      for before, after in PAIRS_MC} for t in sets}
    checks = [
        Check.at_least("violations_times_fewer", worst(v["violations"] for v in each.values()),
                       VIOLATIONS_TIMES, "times", "violations without look-ahead over those with "
                       "all techniques, median of ratios and seeds, of the worst set of traces"),
        Check.at_least("failovers_times_fewer", worst(v["failovers"] for v in each.values()),
                       FAILOVERS_TIMES, "times", "the same of failovers"),
        Check.at_least("disruption_less_pct", worst(d[JUDGED_MC[0]] for d in disruption.values()),
                       DISRUPTION_LESS_PCT, "%", "time of failovers of active databases with move "
                       "costs, how much less than without (both prv with aru), median of ratios "
                       "and seeds, of the worst set of traces"),
        Check.at_least("room", worst(_rounded(room(place, t)) for t in sets), ROOM, "",
                       "databases that all techniques find hosts for, as a part of all, the "
                       "least of all ratios"),
        Check.at_least("capacity_part", _rounded(capacity_part(place, sets, JUDGED_ARU)), ROOM, "",
                       "databases that are placed with aru, as a part of those without (both prv "
                       "with mc), the least of all ratios"),
        Check.equal("runs", len(index(place["runs"])), expected, "runs", "simulated clusters")]
    # So few that one pair says nothing: all four together.
    if without or with_aru:
        checks.append(Check.at_most(
            "new_failovers_part", _rounded(with_aru / max(1, without)), 0.99, "",
            "failovers of VMs younger than a day with aru, as a part of those without, of all "
            "pairs, ratios and seeds; not judged if there are none"))
    return Verdict(checks, [], {
        "times_fewer": each, "disruption_less_pct": disruption,
        # Nothing but look-ahead: figure 12 of the paper may mean either.
        "times_fewer_alone": {t: {name: _rounded(times(place, t, name, ("plb", "prv")))
                                  for name in ("violations", "failovers")} for t in sets},
        "seeds": place["seeds"],
        "new_failovers": {c: total(place, sets, c, "failovers_new") for c in COMBINATIONS},
        "curves": {t: {p: {name: [[r, mean(place, t, r, p, name)] for r in RATIOS]
                           for name in ("violations", "failovers", "refused")}
                       for p in (PLAIN, SUBJECT)} for t in sets},
        "combinations": {t: {p: {name: mean(place, t, ONE_RATIO, p, name) for name in (
            "violations", "failovers", "failovers_new", "disruption_s", "failover_s", "refused")}
            for p in COMBINATIONS} for t in sets}})


def _rounded(value):
    return None if value is None else round(value, 3)
