# SPDX-License-Identifier: GPL-2.0-or-later
"""What report and closing words say of `contention`."""
from harness.report import wording
from harness.report.wording import check, percent, row, value

from ..scenario import Words

LEAD = ("One VM holds all of {host} while its transactions are spread over the table. Then they "
        "crowd on a few records, and the engine finds out by trying that a socket is enough; when "
        "they spread again, it takes the other one back. Nobody tells it: it measures throughput. "
        "Paper: section 4.4, figures 9 and 10.")
ABLATED_LEAD = ("The same VM on {host}, with an engine that takes every CPU that is offered and "
                "keeps it, whatever it brings.")
ABLATION = "the engine keeps all CPUs"


def tiles(summary):
    return [(percent(summary, "tps_high_pct"),
             "throughput with a socket, of that with all CPUs, at high contention"),
            (value(check(summary, "given_back_s"), " s", 1), "until a socket was given back"),
            (value(check(summary, "taken_again_s"), " s", 1), "until it was taken again"),
            *wording.give_tiles(summary)]


def cost(summary):
    tps = (summary.get("tps") or {}).get("high_all")
    return "All CPUs were held all the time, for a throughput of " \
           f"{value(tps)} transactions/s at high contention."


def saw(summary):
    return ["You saw an engine give back a socket that contention had made useless, "
            f"{check(summary, 'given_back_s'):.1f} s after it rose, and take it again.",
            f"With half the CPUs it had {check(summary, 'tps_high_pct'):.0f} % of the throughput "
            f"of all; {wording.outcome(summary)}"]


def paper(summary):
    tps = summary.get("tps") or {}
    return [row("High contention: a socket, of all CPUs", "more than 100 % (figures 9, 10)",
                percent(summary, "tps_high_pct"), "4.4, figure 10"),
            row("High contention with all CPUs, of low contention",
                "a fraction (figure 10, point 1)", value(100 * tps["high_all"] / tps["low"], " %")
                if tps.get("high_all") and tps.get("low") else "not measured", "4.4, figure 10"),
            row("How the engine knows", "the VM monitor reports contention",
                "it tries fewer CPUs and measures throughput", "4.4")]


WORDS = Words(title="A database gives back the CPUs that contention makes useless", lead=LEAD,
              ablated_lead=ABLATED_LEAD, tiles=tiles, saw=saw, paper=paper, ablation=ABLATION,
              ablation_help="the engine keeps all CPUs", cost_title="What it costs to do without",
              cost=cost, saw_ablated=wording.and_cost(
                  f"You saw the run without the mechanism: {ABLATION}.", cost))
