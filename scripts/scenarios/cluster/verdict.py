# SPDX-License-Identifier: GPL-2.0-or-later
"""Verdict of `cluster`: what clients see of a planned move and of a lost host, and whether VMs are
where the scores say."""
from harness.judge.checks import Verdict, total
from harness.record.schema import Check

from .plan import VMS

MAX_PAUSE_MS, MAX_AGAIN_S = 1000, 15
TAIL_S = 2.0            # after the move, which still counts as a part of it
LATE_S = 2.0            # what a placer has said is read so long after it


def changes(told):
    """[{t_s, vm, from, to, live, scores, why}]: each time that a VM has come to another host, with
    the scores by which it did and what the placer of the host that it left said. from: "" at the
    start."""
    found, last = [], {}
    loss_s = told["moments"].get("loss")
    for look in told["looks"]:
        for vm, host in look["where"].items():
            before = last.get(vm, "")
            if host is None or host == before:
                continue
            lost = vm in told["lost"] and before == told["lost_host"] and \
                loss_s is not None and look["t_s"] > loss_s
            live = bool(before) and not lost
            at_s = ordered_s(told, vm, before, look["t_s"]) if live else \
                loss_s if lost else told["moments"]["placed"]
            found.append({"t_s": look["t_s"], "vm": vm, "from": before, "to": host,
                          "live": live, "scores": scores_at(told, vm, at_s),
                          "why": word(told, vm, before, look["t_s"]) if live else ""})
            last[vm] = host
    return found


def ordered_s(told, vm, home, before_s):
    """When its score on its host was first seen to be 0, of the last time that it was; before_s if
    it never was."""
    found = before_s
    for look in reversed([look for look in told["looks"] if look["t_s"] <= before_s]):
        score = look["scores"].get(vm, {}).get(home)
        if score == 0:
            found = look["t_s"]
        elif found != before_s:
            break
    return found


def word(told, vm, host, before_s):
    """Why the placer of a host wanted the VM to leave; empty: it said nothing."""
    said = [w["why"] for w in told["words"] if w["vm"] == vm and w["host"] == host and
            w["score"] == 0 and w["t_s"] <= before_s + LATE_S and w["why"].startswith("moves to")]
    return said[-1] if said else ""


def scores_at(told, vm, t_s):
    """The last that were seen before a time."""
    looks = [look for look in told["looks"] if look["t_s"] <= t_s and look["scores"].get(vm)]
    return looks[-1]["scores"][vm] if looks else {}


def best_of(scores, without):
    """The host with the highest score but for one; None: there is none."""
    known = {host: s for host, s in scores.items() if s is not None and host != without}
    return max(known, key=known.get) if known else None


def pause_ms(told, vm, begin_s, end_s):
    """The longest time without an answer of a VM that reaches into a span; what is not recorded
    was shorter than what is."""
    gaps = [end - begin for begin, end in told["gaps"][vm] if end > begin_s and begin < end_s]
    return round(1000 * max(gaps, default=0.0), 1)


def failures(told, vm, begin_s, end_s):
    return sum(row["failures"] for row in told["loads"][vm]
               if row["t_s"] > begin_s and row["t_s"] - row["seconds"] < end_s)


def again(told):
    """{VM: (seconds until it ran elsewhere, seconds until it answered, its host)} of the VMs of the
    lost host; None: never."""
    loss_s, found = told["moments"]["loss"], {}
    for vm in told["lost"]:
        ran = next((c for c in changes(told) if c["vm"] == vm and c["t_s"] > loss_s), None)
        _, served = max(((end - begin, end) for begin, end in told["gaps"][vm] if end > loss_s),
                        default=(0.0, None))
        found[vm] = (ran and round(ran["t_s"] - loss_s, 2),
                     served and round(served - loss_s, 2), ran and ran["to"])
    return found


def evaluate(run, _samples, _events):
    told = run["cluster"]
    moments = told["moments"]
    all_changes = changes(told)
    planned = [c for c in all_changes if c["live"] and c["t_s"] < moments["loss"]]
    is_early = any(c["t_s"] < moments["grows"] for c in planned)
    placed = [c for c in all_changes if not c["from"]]
    mover = planned[0]["vm"] if planned else None
    span = (moments.get("order"), moments["moved"] + TAIL_S) if "moved" in moments else None
    checks = [
        Check.equal("placed", sum(c["to"] == best_of(c["scores"], None) for c in placed),
                    len(VMS), "VMs", "that started on the host with the best score"),
        Check.equal("moved", len(planned) if span and not is_early else 0, 1, "VMs",
                    "that moved live, after the load had grown and before a host was lost"),
        Check.equal("moved_from_hot", sum(c["vm"] in told["grown"] and "should move" in c["why"]
                                          for c in planned), 1, "VMs",
                    "that moved from the host whose load has grown, as its ebbd had recommended"),
        Check.equal("moved_to_best", sum(c["to"] == best_of(c["scores"], c["from"])
                                         for c in planned), 1, "VMs",
                    "that moved to the host with the best score"),
        Check.equal("failed_at_move", failures(told, mover, *span) if span and mover else None, 0,
                    "transactions", "of the VM that moved that clients gave up, from the order on"),
        Check.at_most("move_pause_ms", pause_ms(told, mover, *span) if span and mover else None,
                      MAX_PAUSE_MS, "ms", "longest time without an answer during the move"),
        Check.equal("restarts_without_loss", sum(told["boots"][vm] - 1 for vm in told["boots"]
                                                 if vm not in told["lost"]), 0, "boots",
                    "of VMs that were not on the lost host, beyond their first")]
    restarts = again(told)
    ran = [seconds for seconds, _, _ in restarts.values()]
    checks += [
        Check.at_most("again_s", max(ran) if ran and None not in ran else None, MAX_AGAIN_S, "s",
                      "until all VMs of the lost host ran on another one"),
        Check.equal("again_on_best", sum(
            host is not None and host == best_of(scores_at(told, vm, moments["loss"]),
                                         told["lost_host"])
            for vm, (_, _, host) in restarts.items()), max(1, len(restarts)), "VMs",
            "of the lost host that run where the best of the other scores was"),
        Check.equal("granted_twice", len(told["doubled"]), 0, "times",
                    "that a core or a VM was held on two hosts, or by two VMs"),
        Check.equal("lost_updates", total(run, "lost_updates"), 0, "updates",
                    "acknowledged increments that the counters lack at the end")]
    return Verdict(checks, [], {
        "changes": all_changes, "lost_host": told["lost_host"], "grown": told["grown"],
        "restarts": {vm: {"ran_s": ran_s, "served_s": served_s, "host": host}
                     for vm, (ran_s, served_s, host) in restarts.items()},
        "doubled": told["doubled"]})
