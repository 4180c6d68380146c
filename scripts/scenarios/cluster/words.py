# SPDX-License-Identifier: GPL-2.0-or-later
"""What report and closing words say of `cluster`."""
from harness.report import wording
from harness.report.wording import check, ms, value

from ..scenario import Words
from .plan import GROWS, LOST

LEAD = ("Four databases on three hosts, {host} each, with a real Pacemaker. It places VMs by "
        "scores that stand for each VM and host. When the load of one database grows, its score "
        "falls, and it moves to a better host while its clients go on. Then a host is lost: it is "
        "fenced, and its database starts on the best of the others, from the shared disk. Paper: "
        "Flexible Resource Allocation, sections 6 and 8.3.")
ABLATED_LEAD = ("The same on three hosts, {host} each, but each VM has a score for its own host "
                "only: nothing moves, and a VM of a lost host waits until that host is back.")


def tiles(summary):
    return [(ms(check(summary, "move_pause_ms")), "longest pause while a VM moved live"),
            (value(check(summary, "failed_at_move")), "transactions failed at that move"),
            (value(check(summary, "again_s"), " s", 1), "until VMs of a lost host ran again"),
            (value(_served(summary), " s", 1), "until they answered clients again"),
            (value(summary["lost_updates"]), "acknowledged updates lost")]


def _served(summary):
    known = [r["served_s"] for r in summary["restarts"].values() if r["served_s"] is not None]
    return max(known) if known else None


def saw(summary):
    moved = next(c for c in summary["changes"] if c["live"])
    return [f"You saw {moved['vm']} move from {moved['from']} to {moved['to']} while its clients "
            f"went on: {value(check(summary, 'failed_at_move'))} transactions failed, the longest "
            f"pause was {ms(check(summary, 'move_pause_ms'))}.",
            f"Then {LOST} was lost: its VMs ran elsewhere after "
            f"{value(check(summary, 'again_s'), ' s', 1)} and served after "
            f"{value(_served(summary), ' s', 1)}; {value(summary['lost_updates'])} acknowledged "
            "updates were lost."]


def cost(summary):
    return (f"{GROWS} stayed on a host that was full, and the VMs of the lost host ran again only "
            f"when it was back: they answered after {value(_served(summary), ' s', 1)}.")


def saw_ablated(summary):
    return ["You saw VMs that are bound to their hosts.", cost(summary)]


def why(change):
    """Why a VM is where it is, from the scores that stood."""
    told = ", ".join(f"{host} {'never' if score is None else score}" for host, score in
                     sorted(change["scores"].items(), key=lambda s: (s[1] is None, -(s[1] or 0))))
    return f"scores: {told}" if told else "scores not seen"


def table(summary):
    return wording.table("Who was where, and why", ("time", "VM", "from", "to", "how", "why"), [
        (f"{c['t_s']:.1f} s", c["vm"], c["from"] or "-", c["to"],
         "started" if not c["from"] else "moved live" if c["live"] else "started again", why(c))
        for c in summary["changes"]])


def paper(_summary):
    return []


def caption(_run):
    return ("Where each database was; requests that were answered per second; response times. All "
            "three hosts share this machine's CPUs, so response times say little.")


WORDS = Words(title="Databases on three hosts", lead=LEAD, ablated_lead=ABLATED_LEAD, tiles=tiles,
              saw=saw, paper=paper, ablation="each VM is bound to its host",
              ablation_help="each VM is bound to its host",
              cost_title="What VMs bound to their hosts cost", cost=cost, saw_ablated=saw_ablated,
              caption=caption, table=table, moves_cpus=False)
