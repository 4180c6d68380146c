# SPDX-License-Identifier: GPL-2.0-or-later
"""Made-up runs of `cluster`: what three hosts would have done."""
import made_up
from scenarios.cluster import plan

STEADY_S, ORDER_S, MOVED_S, LOSS_S, END_S = 10.0, 20.0, 24.0, 34.0, 60.0
HOMES = {"db1": "h1", "db2": "h2", "db3": "h3", "db4": "h1"}
MOVER, TARGET, OTHER = "db4", "h3", "h2"
LOST = TARGET           # the host that is lost
BEFORE = {"db1": {"h1": 988, "h2": 927, "h3": 926}, "db2": {"h1": 905, "h2": 989, "h3": 926},
          "db3": {"h1": 907, "h2": 926, "h3": 988}, "db4": {"h1": 929, "h2": 916, "h3": 928}}
WHY = "moves to h3, which has 928, at a cost of 100: it should move to another host: that frees ..."


def scores(where, leaves=None):
    """As placers tell: a VM stays where it is, but for one."""
    return {vm: {**told, where[vm]: 0 if vm == leaves else 1000} for vm, told in BEFORE.items()}


def run(moved_to=TARGET, pause_s=0.4, failed=0, again_s=5.0, again_on=OTHER, served_s=12.0,
        doubled=(), lost_updates=0, boots=None, started=None, why=WHY, grows_s=ORDER_S - 4):
    """moved_to None: it does not move; again_s None: VMs of the lost host do not run again;
    started: {VM: host} of VMs that do not start where they should."""
    homes = {**HOMES, **(started or {})}
    lost = [vm for vm in homes if {**homes, MOVER: moved_to or homes[MOVER]}[vm] == LOST]
    looks, t = [], 0.5
    while t < END_S:
        where, shown = dict(homes), BEFORE
        if t < 1:
            where = dict.fromkeys(HOMES)
        elif t < ORDER_S:
            shown = scores(where)
        elif t < MOVED_S or not moved_to:
            shown = scores(where, MOVER if moved_to else None)
        else:
            where[MOVER] = moved_to
            shown = scores(where)
            shown[MOVER]["h1"] -= 22    # another one has grown there
        shown = {vm: dict(told) for vm, told in shown.items()}
        if t >= LOSS_S:
            for vm in lost:
                where[vm] = again_on if again_s is not None and t >= LOSS_S + again_s else None
            for told in shown.values():
                told.pop(LOST, None)
        looks.append({"t_s": t, "online": list(plan.HOSTS), "where": where,
                      "held": {vm: 1 for vm in where}, "scores": shown})
        t += 0.5
    moments = {"placed": 0.9, "steady": STEADY_S, "grows": grows_s, "loss": LOSS_S,
               "end": END_S}
    if moved_to:
        moments.update(order=ORDER_S, moved=MOVED_S)
    gaps = {vm: [] for vm in HOMES}
    gaps[MOVER] = [(ORDER_S + 3, ORDER_S + 3 + pause_s)]
    if served_s is not None:
        for vm in lost:
            gaps[vm].append((LOSS_S, LOSS_S + served_s))
    rows = {vm: [{"t_s": float(s), "seconds": 1.0, "done": 20, "p50_us": 4000, "p99_us": 30000,
                  "failures": failed if vm == MOVER and s == MOVED_S else 0, "repeated": 0}
                 for s in range(int(STEADY_S), int(END_S))] for vm in HOMES}
    made = made_up.run("cluster", list(HOMES), cluster={
        "moments": moments, "grown": ["db1", "db4"], "lost_host": LOST, "lost": lost,
        "looks": looks, "doubled": list(doubled), "gaps": gaps, "loads": rows, "counters": {},
        "words": [{"t_s": ORDER_S + 0.5, "host": "h1", "vm": MOVER, "score": 0, "why": why}],
        "boots": boots or {vm: 2 if vm in lost else 1 for vm in HOMES}})
    for vm in HOMES:
        made["results"][vm] = {"committed": 1000, "aborted": 0, "lost_updates": lost_updates,
                               "failed": failed if vm == MOVER else 0}
    made["host"] = dict(made["host"], hosts=len(plan.HOSTS))
    return made
