# SPDX-License-Identifier: GPL-2.0-or-later
"""Made-up runs of `migrate`: what good and bad nodes would have done."""
import made_up
from scenarios.migrate import plan, verdict

STEADY_S, ORDER_S, END_S = 2.0, 8.0, 40.0


def case(planned=plan.CASES[0], slow=1.4, slow_s=8, moves_s=20, failed=0, received=1.2,
         pause_ms=12.0, others=1.02, cpu=1.2, came=1.0, is_over=True, lost=0, violations=0):
    """slow: response times for slow_s after the order, of the steady ones; moves_s: until all
    connections have moved; failed: in the second after the order; received, of what was cached;
    others: response times of the other tenants; cpu: of both nodes, of that before; came: of the
    CPU time that was asked for."""
    def seconds(factor, failures=0):
        rows = []
        for i in range(int(END_S)):
            t = i + 1.2
            is_after = t > ORDER_S
            part = min(1.0, max(0.0, (t - ORDER_S) / moves_s))
            moved = round(part * planned.connections)
            slow_now = factor if is_after and t <= ORDER_S + slow_s else 1.0
            mean = 2000.0 * slow_now
            rows.append({"t_s": t, "seconds": 1.0, "done": 400, "mean_us": mean,
                         "p99_us": 4 * mean,
                         "failures": failures if is_after and t <= ORDER_S + 1 else 0,
                         "moves": 1 if 0 < part < 1 else 0, "nodes": [
                             {"connections": planned.connections - moved, "done": 200,
                              "mean_us": mean},
                             {"connections": moved, "done": 200, "mean_us": mean}]})
        return rows

    def looks(value):
        return [{"t_s": i / 4, **value(i / 4)} for i in range(int(4 * END_S) + 1)]

    def node(name):
        cached = plan.TPCC_RECORD_BYTES * 1000 if planned.warehouses else 1024 * planned.rows
        return looks(lambda t: {
            "cached_bytes": 2 * cached, "records": 1000, "cold_records": 0, "owned": 256,
            "sent_bytes": 100000, "received_bytes": int(
                received * cached if name == "target" and t > ORDER_S else 0)})

    def use(t):
        ran = 0.4 * t + (0.4 * (cpu - 1) * (t - ORDER_S) if t > ORDER_S else 0.0)
        others = ran * (1 / came - 1)
        # Beside it a group that waits for itself, and one beside which others work.
        return {"groups": [
            {"ran_s": 0.8 * ran, "waited_s": 1.2 * others, "machine_s": 0.8 * ran + 1.2 * others},
            {"ran_s": 0.3 * ran, "waited_s": ran, "machine_s": 0.3 * ran},
            {"ran_s": 0.1 * ran, "waited_s": 0.0, "machine_s": 2 * ran}],
                "source": 0.7 * ran, "target": 0.3 * ran}
    found = {"acknowledged": 1600, "unknown": 0, "lost": lost, "extra": 0}
    none_lost = {**found, "lost": 0}
    books = {"tables": {"violations": violations, "parts": 100, "rolled_back": 7, "orders": found,
                        "payments": none_lost, "deliveries": none_lost}} \
        if planned.warehouses else {"counters": found}
    pauses = {"n": 100, "p50_us": 2000, "p99_us": 1000 * pause_ms, "max_us": 90000}
    return {**plan.told(planned), "steady_s": STEADY_S, "order_s": ORDER_S,
            "over_s": ORDER_S + moves_s + 1 if is_over else None, "end_s": END_S, "units": 256,
            "pauses": {"source": {**pauses, "n": 0}, "target": pauses}, "taken_back": 10,
            "looks": {"cpu": looks(use), "source": node("source"), "target": node("target")},
            "load": seconds(slow, failed), "others": [seconds(others)] * planned.tenants,
            "others_failed": 0,
            "summary": {"arrived": 16000, "failures": failed, "all": {"done": 16000 - failed},
                        **books}}


def run(*cases):
    """Without cases: the usual ones, as they must be."""
    cases = cases or [good(planned) for planned in usual()]
    made = made_up.run("migrate", [c["name"] for c in cases],
                       migrate={"cases": list(cases), "cpus": 2})
    for c in cases:
        made["results"][c["name"]] = {
            "failed": c["summary"]["failures"], "aborted": 0,
            "committed": c["summary"]["all"]["done"],
            "lost_updates": verdict.lost_of(c["summary"])}
    made.update(accelerator="none", host=dict(made["host"], spec="auto", emulated=False))
    return made


def usual():
    return [planned for planned in plan.CASES if planned.is_usual]


def good(planned):
    if planned.mode == plan.ABRUPT:
        return case(planned, slow=50.0, failed=900, moves_s=1)
    return case(planned)


def one(table, mode=plan.ADAPTIVE):
    return next(c for c in plan.CASES if c.table == table and c.mode == mode)
