# SPDX-License-Identifier: GPL-2.0-or-later
"""What report and closing words say of `isolate`."""
from harness.report import wording
from harness.report.wording import check, percent, row, value

from ..scenario import Words

LEAD = ("One VM runs on both sockets of {host} until a second one comes. Under the policy "
        "{policy} each then has a socket of its own, with the hyperthreads; for comparison, in the "
        "same run, both run under the policy fair, which gives each CPU a core. Paper: section "
        "4.3, figures 7 and 8. What is seen here comes from cores and threads alone: an emulated "
        "host has no caches and no memory of its own to share or to keep apart, which is the other "
        "part of what the paper measured.")
ABLATED_LEAD = ("The same VMs on {host} under the policy fair all the time: either may be on both "
                "sockets, and no two threads of a core are given out.")


def tiles(summary):
    return [(percent(summary, "gain_pct"), "throughput apart, of that under the policy fair"),
            (value(summary["first_apart_pct"], " %"), "of the first tenant's, of that alone"),
            *wording.give_tiles(summary)]


def cost(_summary):
    return "No socket was anybody's own, and each CPU was on a core of its own; the second " \
           "thread of each core stayed unused."


def saw(summary):
    return ["You saw two databases on a socket each, with its hyperthreads, and a core per CPU.",
            f"Apart they had {check(summary, 'gain_pct'):.0f} % of the throughput of the latter; "
            f"{wording.outcome(summary)}"]


def paper(summary):
    return [row("A socket each, of shared sockets", "about 135 % (figures 7, 8)",
                percent(summary, "gain_pct") + " of policy fair (sockets shared "
                f"{value(summary['sockets_shared_fair_pct'])} % of the time); no caches",
                "4.3, figure 8"),
            row("First tenant with one socket, of two", "about 80 %: threads for cores",
                value(summary["first_apart_pct"], " %"), "4.3, figure 8")]


WORDS = Words(title="Two databases, a socket each", lead=LEAD, ablated_lead=ABLATED_LEAD,
              tiles=tiles, saw=saw, paper=paper, ablation="policy fair",
              ablation_help="the policy is fair", cost_title="What it costs to do without",
              cost=cost, saw_ablated=wording.and_cost(
                  "You saw the run without the mechanism: policy fair.", cost))
