# SPDX-License-Identifier: GPL-2.0-or-later
"""Verdict of `scaleout`: what a remote operation costs over two-phase commit, and as memory.

Throughput of both nodes together, or of the one engine; medians over the turns; each set-up is
compared with itself without remote operations.
"""
from harness.judge import slices
from harness.judge.checks import Verdict, outcome_checks
from harness.record.schema import Check

TWO_PHASE, MEMORY = "2pc", "memory"
OPERATIONS = 10         # of a transaction
# "Several times"; the paper saw a factor of 8.
LEAST_COST = 3.0
# Remote memory "costs far less": the most that any number of operations costs there, against one
# here.
MOST_SHARE = 0.5


def curve(samples, variant):
    """{remote operations: median throughput} of a set-up."""
    return {remote: tps for (v, _, remote), (tps, _, _) in
            slices.medians(slices.slice_tps(samples)).items() if v == variant}


def cost(tps, remote):
    """How many times less than without remote operations; None: not measured."""
    if not tps.get(0) or not tps.get(remote):
        return None
    return tps[0] / tps[remote]


def evaluate(run, samples, _events):
    two, one = curve(samples, TWO_PHASE), curve(samples, MEMORY)
    first = cost(two, 1)
    memory = [cost(one, r) for r in range(1, OPERATIONS + 1)]
    worst = max(memory) if all(memory) else None
    share = worst / first if first and worst else None
    points = len([r for r in range(OPERATIONS + 1) if two.get(r) and one.get(r)])
    checks = [
        Check.at_least("one_remote_operation_cost", _rounded(first), LEAST_COST, "times",
                       "throughput of the two nodes without remote operations over that with one"),
        Check.at_most("remote_memory_cost_share", _rounded(share), MOST_SHARE, "",
                      "the most that one to ten remote operations cost in one engine over what one "
                      "costs between two nodes"),
        Check.equal("points", points, OPERATIONS + 1, "points",
                    "numbers of remote operations with a throughput for both set-ups"),
    ] + outcome_checks(run)
    return Verdict(checks, [], {
        "curves": {name: [[r, round(tps[r], 1)] for r in sorted(tps)]
                   for name, tps in ((TWO_PHASE, two), (MEMORY, one))},
        "one_remote_cost": _rounded(first),
        "all_remote_cost": _rounded(cost(two, OPERATIONS)),
        "memory_one_cost": _rounded(cost(one, 1)),
        "memory_worst_cost": _rounded(worst),
        "numa_nodes": run["numa_nodes"]})


def _rounded(value):
    return None if value is None else round(value, 3)
