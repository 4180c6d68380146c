# SPDX-License-Identifier: GPL-2.0-or-later
"""What report and closing words say of `cluster`."""
from harness.report import wording
from harness.report.wording import check, ms, value

from ..scenario import Words

LEAD = ("Four databases on three hosts, {host} each, with a real Pacemaker. On each host a placer "
        "says how well each VM would do there, judged by what earlier VMs of its class wanted; "
        "Pacemaker puts it where the score is best. When the load of two databases on one host "
        "grows, its agent finds that the host is hot and who should leave it, and that one moves "
        "live to the best of the others while its clients go on. Then that host is lost: it is "
        "fenced, and its databases start on the best of the others, from the shared disk. Paper: "
        "Flexible Resource Allocation, sections 6 and 8.3.")
ABLATED_LEAD = ("The same on three hosts, {host} each, but without placers: all hosts are alike "
                "for each VM, so that none leaves a hot host.")


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
    lost = summary["lost_host"]
    return [f"You saw {moved['vm']} move from {moved['from']} to {moved['to']} while its clients "
            f"went on: {value(check(summary, 'failed_at_move'))} transactions failed, the longest "
            f"pause was {ms(check(summary, 'move_pause_ms'))}.",
            f"Then {lost} was lost: its VMs ran elsewhere after "
            f"{value(check(summary, 'again_s'), ' s', 1)} and served after "
            f"{value(_served(summary), ' s', 1)}; {value(summary['lost_updates'])} acknowledged "
            "updates were lost."]


def cost(summary):
    return (f"{' and '.join(summary['grown'])} stayed together on a host that was hot, though "
            "others had CPUs to spare.")


def saw_ablated(summary):
    return ["You saw VMs that nobody moves.", cost(summary)]


def why(change):
    """Why a VM is where it is: the scores that stood, and the placer's words."""
    told = ", ".join(f"{host} {'never' if score is None else score}" for host, score in
                     sorted(change["scores"].items(), key=lambda s: (s[1] is None, -(s[1] or 0))))
    return (f"scores: {told}" if told else "scores not seen") + \
        (f"; {change['why']}" if change["why"] else "")


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
              saw=saw, paper=paper, ablation="no placers",
              ablation_help="no placers: all hosts are alike for each VM",
              cost_title="What hosts without placers cost", cost=cost, saw_ablated=saw_ablated,
              caption=caption, table=table, moves_cpus=False)
