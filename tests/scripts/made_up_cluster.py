# SPDX-License-Identifier: GPL-2.0-or-later
"""Made-up runs of `cluster`: what three hosts would have done."""
import made_up
from scenarios.cluster import plan

STEADY_S, ORDER_S, MOVED_S, LOSS_S, END_S = 10.0, 20.0, 24.0, 34.0, 60.0
TARGET, OTHER = "h3", "h1"      # of the VM that moves; of the one whose host is lost
LOST_VM = "db3"


def run(moved_to=TARGET, pause_s=0.4, failed=0, again_s=5.0, again_on=OTHER, served_s=12.0,
        doubled=(), lost_updates=0, boots=None):
    """moved_to None: it does not move; again_s None: the VM of the lost host does not run again."""
    rates = {**plan.RATES, plan.GROWS: plan.GROWN_RATE}
    before = plan.scores(plan.HOMES, rates, leaves=(plan.GROWS,))
    after = plan.scores({**plan.HOMES, plan.GROWS: TARGET}, rates)
    looks, t = [], 0.5
    while t < END_S:
        where = dict(plan.HOMES)
        if t >= MOVED_S and moved_to:
            where[plan.GROWS] = moved_to
        scores = before if t <= MOVED_S else after
        shown = {vm: dict(told) for vm, told in scores.items()}
        if t >= LOSS_S:
            where[LOST_VM] = again_on if again_s is not None and t >= LOSS_S + again_s else None
            for told in shown.values():
                told.pop(plan.LOST, None)
        looks.append({"t_s": t, "online": list(plan.HOSTS), "where": where,
                      "held": {vm: 1 for vm in where}, "scores": shown})
        t += 0.5
    moments = {"placed": 0.0, "steady": STEADY_S, "grows": ORDER_S - 4, "order": ORDER_S,
               "loss": LOSS_S, "end": END_S}
    if moved_to:
        moments["moved"] = MOVED_S
    gaps = {vm: [] for vm in plan.HOMES}
    gaps[plan.GROWS] = [(ORDER_S + 3, ORDER_S + 3 + pause_s)]
    if served_s is not None:
        gaps[LOST_VM] = [(LOSS_S, LOSS_S + served_s)]
    rows = {vm: [{"t_s": float(s), "seconds": 1.0, "done": 20, "p50_us": 4000, "p99_us": 30000,
                  "failures": failed if vm == plan.GROWS and s == MOVED_S else 0, "repeated": 0}
                 for s in range(int(STEADY_S), int(END_S))] for vm in plan.HOMES}
    made = made_up.run("cluster", list(plan.HOMES), cluster={
        "moments": moments, "lost": [LOST_VM], "looks": looks, "doubled": list(doubled),
        "gaps": gaps, "loads": rows, "counters": {},
        "boots": boots or {vm: 2 if vm == LOST_VM else 1 for vm in plan.HOMES}})
    for vm in plan.HOMES:
        made["results"][vm] = {"committed": 1000, "aborted": 0, "lost_updates": lost_updates,
                               "failed": failed if vm == plan.GROWS else 0}
    made["host"] = dict(made["host"], hosts=len(plan.HOSTS))
    return made
