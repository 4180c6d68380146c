# SPDX-License-Identifier: GPL-2.0-or-later
"""Verdict of `migrate`: what the clients of a database see while it moves to another node.

Times are those of "Downtime-Free Live Migration", 4.3. Response times include the time in the load
generator's queue. They are only judged if other programs left the nodes the CPU time that they
asked for.
"""
from harness.judge import delivery
from harness.judge.checks import Verdict, total
from harness.record.schema import Check

from .plan import ABRUPT, ROW_BYTES, TPCC_RECORD_BYTES

MAX_RATIO, MAX_RATIO_BESIDE = 1.5, 2.0  # mean response time, of the steady one
MAX_OTHERS_PCT = 5.0                    # by which those of other tenants grow
MAX_RECEIVED = 1.3                      # bytes, of those that were cached
MAX_PAUSE_MS = 20.0                     # p99 of waiting for a unit
# The impact ends with the first of so many seconds whose response times are within 10% of the
# steady ones. One second may be so by chance; before a quarter of the connections has moved, few
# requests have met the target at all.
CALM_SECONDS, CALM_RATIO, CALM_MOVED = 3, 1.1, 0.25


def mean_us(rows):
    """Of all requests that were answered in some seconds; None: there are none."""
    done = sum(row["done"] for row in rows)
    return sum(row["mean_us"] * row["done"] for row in rows) / done if done else None


def within(rows, begin_s, end_s):
    """Whole seconds of a time."""
    return [row for row in rows
            if row["seconds"] > 0.5 and row["t_s"] - row["seconds"] >= begin_s and
            row["t_s"] <= end_s]


def phase_of(rows, case):
    """Seconds from the order on; that in which it was given is the first."""
    return [row for row in rows if row["seconds"] > 0.5 and case["order_s"] < row["t_s"] <=
            case["end_s"]]


def moved_at(case):
    """When no connection was left on the source, to a second; None: never."""
    for row in phase_of(case["load"], case):
        left, arrived = row["nodes"][0]["connections"], row["nodes"][1]["connections"]
        if not left and arrived:
            return row["t_s"]
    return None


def impact_of(case, steady_us):
    """(seconds, the rows in which requests were slower, whether that ended)"""
    rows = phase_of(case["load"], case)
    for i, row in enumerate(rows):
        calm = rows[i:i + CALM_SECONDS]
        moved = row["nodes"][1]["connections"] / case["connections"]
        if len(calm) == CALM_SECONDS and moved >= CALM_MOVED and not any(
                r["failures"] for r in calm) and mean_us(calm) is not None and \
                mean_us(calm) <= CALM_RATIO * steady_us:
            # The second of the order is part of the impact in any case.
            slow = rows[:max(i, 1)]
            return slow[-1]["t_s"] - case["order_s"], slow, True
    return case["end_s"] - case["order_s"], rows, False


def lost_of(summary):
    """Lost acknowledged changes: increments, or orders, payments and deliveries."""
    if "tables" not in summary:
        return summary["counters"]["lost"]
    return sum(summary["tables"][name]["lost"] for name in ("orders", "payments", "deliveries"))


def look_at(case, what, t_s):
    """The last look at a node, or at the CPU time, before a time; None: there is none."""
    return next((look for look in reversed(case["looks"][what]) if look["t_s"] <= t_s), None)


def cached_bytes(case):
    """Of rows that the source had in memory before the move; None: not known."""
    look = look_at(case, "source", case["order_s"])
    if look is None or not look["records"]:
        return None
    if case.get("warehouses", 0):
        return TPCC_RECORD_BYTES * look["records"]
    return round(ROW_BYTES * case["rows"] * look["records"] /
                 (look["records"] + look["cold_records"]))


def transferred(case, name):
    """Bytes that the target received or sent in all; None: not known."""
    look = look_at(case, "target", case["end_s"])
    return look and look[name]


def cpu_between(case, begin_s, end_s):
    """Resources used between two looks, in the form of a look; None: not known."""
    before, after = look_at(case, "cpu", begin_s), look_at(case, "cpu", end_s)
    if before is None or before is after:
        return None
    return {**{name: after[name] - before[name] for name in after if name != "groups"},
            "groups": [{name: a[name] - b[name] for name in a}
                       for a, b in zip(after["groups"], before["groups"])]}


def cpu_cost(case):
    """CPU time per second of both nodes while the database moves, of that before."""
    rates = []
    for begin_s, end_s in spans_of(case):
        used = cpu_between(case, begin_s, end_s)
        rates.append((used["source"] + used["target"]) / used["t_s"] if used else None)
    return rates[1] / rates[0] if all(rates) else None


def spans_of(case):
    """Before the order, and from then on."""
    return (case["steady_s"], case["order_s"]), (case["order_s"], case["end_s"])


def missing_pct(case):
    """CPU time that other programs had while the nodes and their clients waited for a CPU, on the
    same CPUs: at most so much was due to them and did not come. None: not known."""
    found = []
    for begin_s, end_s in spans_of(case):
        used = cpu_between(case, begin_s, end_s)
        if used is None:
            return None
        ran_s = sum(group["ran_s"] for group in used["groups"])
        found.append(delivery.missing_pct(delivery.Delivered(ran_s, ran_s + sum(
            min(group["waited_s"], max(0.0, group["machine_s"] - group["ran_s"]))
            for group in used["groups"]))))
    return max(found)


def others_pct(case):
    """By how much the response times of the other tenants grew; None: not known."""
    before = mean_us([row for rows in case["others"]
                      for row in within(rows, case["steady_s"], case["order_s"])])
    during = mean_us([row for rows in case["others"] for row in phase_of(rows, case)])
    return 100 * (during / before - 1) if before and during else None


def measure(case):
    """The figures of the paper's tables, of one case; None: not known."""
    steady_us = mean_us(within(case["load"], case["steady_s"], case["order_s"]))
    impact_s, slow, has_ended = impact_of(case, steady_us or 0.0)
    during_us, moved_s = mean_us(slow), moved_at(case)
    received, cached = transferred(case, "received_bytes"), cached_bytes(case)
    pauses = [p["p99_us"] for p in case["pauses"].values() if p["n"]]
    return {
        "name": case["name"], "table": case["table"], "mode": case["mode"], "mix": case["mix"],
        "rows": case["rows"], "rate": case["rate"], "memory_mib": case["memory_mib"],
        "warehouses": case.get("warehouses", 0),
        "tenants": case["tenants"], "is_judged": case["is_judged"], "paper": case["paper"],
        "migration_s": _rounded(moved_s and moved_s - case["order_s"], 1),
        "handover_s": _rounded(case["over_s"] and case["over_s"] - case["order_s"], 1),
        "impact_s": _rounded(impact_s, 1), "impact_has_ended": has_ended,
        "failed": case["summary"]["failures"],
        "failed_pct": _rounded(100 * case["summary"]["failures"] /
                               max(1, case["summary"]["arrived"]), 2),
        "lost": lost_of(case["summary"]),
        "violations": case["summary"].get("tables", {}).get("violations"),
        "steady_ms": _rounded(steady_us and steady_us / 1000),
        "impact_ms": _rounded(during_us and during_us / 1000),
        "ratio": _rounded(during_us / steady_us if during_us and steady_us else None),
        "cached_bytes": cached, "received_bytes": received,
        "sent_bytes": transferred(case, "sent_bytes"),
        "received_ratio": _rounded(received / cached if received is not None and cached else None),
        "taken_back": case["taken_back"],
        "cpu_cost": _rounded(cpu_cost(case)),
        "pause_p99_ms": _rounded(max(pauses) / 1000 if pauses else None),
        "others_pct": _rounded(others_pct(case), 1) if case["tenants"] else None,
        "others_failed": case["others_failed"],
        "missing_pct": missing_pct(case)}


def is_felt(m):
    """Where two CPUs do all the work, requests wait for more than 1 s, and fail; with CPUs enough
    they only wait."""
    return m["failed"] > 0 or (m["ratio"] or 0.0) > MAX_RATIO


def worst(measures, name, of):
    """(the largest value; None: one is not known, or there is none; text for the check)"""
    known = [m[name] for m in measures if m[name] is not None]
    if not measures or len(known) < len(measures):
        return None, of
    most = max(measures, key=lambda m: m[name])
    return most[name], f"{of}: {most['name']}"


def bounds(measures):
    """Checks of moves that must not be felt."""
    alone = [m for m in measures if not m["tenants"]]
    beside = [m for m in measures if m["tenants"]]
    checks = []

    def at_most(cases, name, field, bound, unit, text, counts_work=False):
        if not cases:
            return
        value, words = worst(cases, field, text)
        check = Check.at_most(name, value, bound, unit, words)
        checks.append(check.of_work() if counts_work else check)
    at_most(measures, "failed_requests", "failed", 0, "requests",
            "the most that failed in a move, since they waited for more than 1 s or otherwise",
            True)
    at_most(alone, "response_ratio", "ratio", MAX_RATIO, "times",
            "mean response time while it is felt that the database moves, of the steady one, in "
            "the worst move", True)
    at_most(beside, "response_ratio_beside_tenants", "ratio", MAX_RATIO_BESIDE, "times",
            "the same beside other tenants", True)
    at_most(beside, "others_response_pct", "others_pct", MAX_OTHERS_PCT, "%",
            "by which mean response times of the other tenants grew", True)
    at_most(beside, "others_failed", "others_failed", 0, "requests", "of the other tenants failed",
            True)
    at_most(measures, "received_ratio", "received_ratio", MAX_RECEIVED, "times",
            "bytes that the target received, of those that the source had cached, in the worst "
            "move")
    at_most(measures, "pause_p99_ms", "pause_p99_ms", MAX_PAUSE_MS, "ms",
            "p99 of the time that a request waited for a unit of the other node, in the worst "
            "move", True)
    return checks


def evaluate(run, _samples, _events):
    cases = run["migrate"]["cases"]
    measures = [measure(case) for case in cases]
    checks = bounds([m for m in measures if m["is_judged"]])
    abrupt = [m for m in measures if m["mode"] == ABRUPT and not m["is_judged"] and
              not m["tenants"]]
    if abrupt:
        checks.append(Check.equal("abrupt_felt", sum(is_felt(m) for m in abrupt), len(abrupt),
                                  "moves", "of all connections at once in which requests failed, "
                                  f"or took more than {MAX_RATIO} times as long"))
    done = [m for m in measures if m["migration_s"] is not None and m["handover_s"] is not None]
    checks += [
        Check.equal("moved", len(done), max(1, len(measures)), "moves",
                    "that came to their end: all connections and units are at the target"),
        Check.equal("lost_updates", total(run, "lost_updates"), 0, "updates",
                    "acknowledged increments that the counters lack at the end, whatever the mode; "
                    "of the TPC-C-like workload, orders, payments and deliveries")]
    like_tpcc = [m["violations"] for m in measures if m["warehouses"]]
    if like_tpcc:
        checks.append(Check.equal("violations", sum(like_tpcc), 0, "violations",
                                  "of TPC-C's consistency conditions at the end"))
    if any(check.counts_work for check in checks):
        checks.append(delivery.check([m["missing_pct"] for m in measures if m["is_judged"]]))
    return Verdict(checks, [], {"moves": measures, "cpus": run["migrate"]["cpus"]})


def _rounded(value, digits=3):
    return None if value is None else round(value, digits)
