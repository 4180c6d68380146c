# SPDX-License-Identifier: GPL-2.0-or-later
"""Verdict of `failover`: how soon response times of Delivery are what they were, with and without
the cache.

They include the time in the load generator's queue. A request that failed, of whatever kind, makes
its second one in which response times are not back.
"""
from harness.judge.checks import Verdict, total
from harness.record.schema import Check

from .plan import COLD, WARM

MAX_SHARE = 0.1             # of the time that the cold node needs
BACK_RATIO = 1.2            # response times are back: within 20% of the old ones
MAX_PAUSE_MS = 200.0
MAX_FIRST_MS = 200.0
# One second may be good or bad by chance.
CALM_SECONDS = 3


def mean_us(rows):
    """Of all that were answered in some seconds; None: there are none."""
    done = sum(row["done"] for row in rows)
    return sum(row["mean_us"] * row["done"] for row in rows) / done if done else None


def steady_us(case):
    return mean_us([row for row in case["load"] if row["seconds"] > 0.5 and
                    row["t_s"] - row["seconds"] >= case["steady_s"] and
                    row["t_s"] <= case["order_s"]])


def after(case):
    """Seconds from the order on; that in which it was given is the first."""
    return [row for row in case["load"] if row["seconds"] > 0.5 and
            case["order_s"] < row["t_s"] <= case["end_s"]]


def back_s(case):
    """(seconds from the order until response times were back for good, whether they were).

    The second of the order counts in any case; while records go ahead clients are served as ever,
    so it may be that no other does.
    """
    rows, steady = after(case), steady_us(case)
    slow = [i for i, row in enumerate(rows) if not is_calm([row], steady)]
    last = slow[-1] if slow else 0
    has_ended = len(rows) > CALM_SECONDS and is_calm(rows[-CALM_SECONDS:], steady)
    if not rows:
        return None, False
    return rows[last]["t_s"] - case["order_s"] if has_ended else \
        case["end_s"] - case["order_s"], has_ended


def is_calm(rows, steady):
    mean = mean_us(rows)
    return not any(row["failures"] for row in rows) and None not in (mean, steady) and \
        mean <= BACK_RATIO * steady


def felt_s(case):
    """Seconds, of those from the order on, that were not as before; at least one."""
    steady = steady_us(case)
    return float(max(1, sum(not is_calm([row], steady) for row in after(case))))


def measure(case):
    steady = steady_us(case)
    worst = max((row["mean_us"] for row in after(case) if row["done"]), default=None)
    seconds, has_ended = back_s(case)
    copied = case["copied"] or {}
    return {"name": case["name"], "how": case["how"], "steady_ms": _ms(steady),
            "worst_ms": _ms(worst), "back_s": _rounded(seconds, 1), "is_back": has_ended,
            "felt_s": felt_s(case), "failed": case["summary"]["failures"],
            "lost": case["lost"], "is_over": case["is_over"],
            "copy_s": _rounded(case["gone_s"] - case["order_s"], 1),
            "copied_bytes": copied.get("bytes"), "rounds": copied.get("rounds"),
            "stale_pages": copied.get("stale_pages"),
            "pause_ms": copied.get("pause_ms") if copied.get("at_once") else None,
            "first_answer_ms": case["first_answer_ms"]}


def evaluate(run, _samples, _events):
    told = run["failover"]
    measures = {m["name"]: m for m in map(measure, told["cases"])}
    warm, cold = measures[WARM], measures[COLD]
    # That of the cold node may be longer than it was watched: then the share is less.
    share = warm["felt_s"] / cold["back_s"] if warm["is_back"] and cold["back_s"] else None
    checks = [
        Check.at_most("back_share", _rounded(share), MAX_SHARE, "",
                      "time in which response times of Delivery were more than 20% above the old "
                      "ones with the cache, of the time until they were back without it"),
        Check.at_most("pause_ms", warm["pause_ms"], MAX_PAUSE_MS, "ms",
                      "writers waited while the rest was sent and the owner changed"),
        Check.equal("warm_failed", warm["failed"], 0, "requests",
                    "failed in the failover with the cache"),
        Check.at_most("first_answer_ms", told["lazy"]["first_answer_ms"], MAX_FIRST_MS, "ms",
                      "from the start of a server on a database of 1 GiB to its first transaction"),
        Check.equal("gone", sum(m["is_over"] for m in measures.values()), 2, "failovers",
                    "that came to their end"),
        Check.equal("lost_updates", total(run, "lost_updates"), 0, "updates",
                    "acknowledged orders, payments and deliveries that the tables lack at the "
                    "end, and rows that do not fit together")]
    return Verdict(checks, [], {"failovers": [warm, cold], "lazy": told["lazy"]})


def _ms(value):
    return _rounded(None if value is None else value / 1000)


def _rounded(value, digits=3):
    return None if value is None else round(value, digits)
