# SPDX-License-Identifier: GPL-2.0-or-later
"""Made-up runs of `failover`: what good and bad nodes would have done."""
import made_up
from scenarios.failover import plan
from scenarios.failover.plan import COLD, WARM

STEADY_S, ORDER_S = 2.0, 8.0


def case(name, slow=3.0, slow_s=1, end_s=None, failed=0, lost=0, pause_ms=80.0, at_once=True,
         is_over=True, how=None):
    """slow: response times for slow_s after the order, of the steady ones; failed: in the second
    after the order."""
    end_s = end_s or ORDER_S + plan.TAIL_S[name]
    how = how or name
    rows = []
    for i in range(int(end_s)):
        t = i + 1.2
        is_slow = ORDER_S < t <= ORDER_S + slow_s
        is_first = ORDER_S < t <= ORDER_S + 1
        mean = 2000.0 * (slow if is_slow else 1.0)
        rows.append({"t_s": t, "seconds": 1.0, "done": 20, "mean_us": mean, "p99_us": 4 * mean,
                     "failures": failed if is_first else 0})
    copied = {"rounds": 3, "pages": 40000, "bytes": 320 << 20, "stopped": "few",
              "at_once": at_once, "stale_pages": 90, "pause_ms": pause_ms}
    return {"name": name, "how": how, "steady_s": STEADY_S, "order_s": ORDER_S, "end_s": end_s,
            "gone_s": ORDER_S + 6, "is_over": is_over, "load": rows,
            "copied": copied if how == WARM else None,
            "first_answer_ms": 900.0 if how == COLD else None,
            "lost": lost, "summary": {"failures": failed, "all": {"done": 5000}}}


def run(warm=None, cold=None, first_ms=150.0):
    """Without cases: as they must be."""
    cases = [warm or case(WARM), cold or case(COLD, slow=40.0, slow_s=30, failed=300)]
    made = made_up.run("failover", [c["name"] for c in cases], failover={
        "cases": cases, "lazy": {"bytes": 1 << 30, "first_answer_ms": first_ms},
        "read_mib_s": plan.READ_MIB_S, "warehouses": plan.WAREHOUSES})
    for c in cases:
        made["results"][c["name"]] = {
            "failed": c["summary"]["failures"], "aborted": 0,
            "committed": c["summary"]["all"]["done"],
            "lost_updates": c["lost"]}
    made.update(accelerator="none", host=dict(made["host"], spec="auto", emulated=False))
    return made
