# SPDX-License-Identifier: GPL-2.0-or-later
"""What report and closing words say of `broker`."""
from harness.report import wording
from harness.report.wording import check, count, outcome, percent, row, value

from ..scenario import Words

TITLE = "A warm database grows at the cost of a cold one"
LEAD = ("Two VMs on {host} share one pool of memory that is too small for both. A large database "
        "has held most of it and has nothing to do any more when a small one begins to grow. Which "
        "memory goes is asked of both guests (value of memory) or not (equal, proportional, "
        "balloon): one round of the same story under each policy. Paper: Flexible resource "
        "allocation, section 8.1, figures 8 and 9.")
ABLATED_LEAD = ("The same two VMs on {host}, with a black-box policy where the value of memory "
                "should decide.")


def caption(run):
    b = run["broker"]
    return f"Throughput: moving average over {b['window_s']:g} s; what the VMs' disks may read " \
           "sets its pace. " \
           f"The paper's minute is {b['minute_s']:g} s here: its average is over two minutes, " \
           f"its ramp-up ten. Between two brokerings are {b['cool_down_s']:g} s. " \
           f"Load: {b['load']}." + wording.on_emulated_host(run, "shapes and ratios")


def tiles(summary):
    """[(value, what it is)]"""
    told = summary["rounds"]
    return [(percent(summary, "gain_pct"),
             "median throughput of the ramp-up, of that under the best other policy"),
            (value(summary["p95_gain_pct"], " %"), "the same of the 95th percentiles"),
            (percent(summary, "restart_pct"),
             "throughput of the cold VM after its restart, of that under proportional"),
            (value(summary["largest_histogram_bytes"], " B"), "largest histogram"),
            (count(summary["failed_transactions"]), "transactions failed"),
            (count(summary["lost_updates"]), "updates lost"),
            (str(len(told)), "rounds")]


def table(summary):
    """The rounds beside one another, as HTML."""
    head = ("policy", "median", "p95", "reads per transaction", "warm VM's memory: from", "to",
            "cold VM's restart", "reads per transaction", "both: cold VM", "warm VM",
            "brokerings")
    return wording.table("The rounds", head, [
        (name, value(m["median_tps"], "/s"), value(m["p95_tps"], "/s"),
         value(m["ramp_reads"], digits=2),
         value(m["warm_held_first_mib"], " MiB"), value(m["warm_held_mib"], " MiB"),
         value(m["restart_tps"], "/s"), value(m["restart_reads"], digits=2),
         *(value(tps, "/s") for tps in m["both_tps"].values()), summary["brokerings"][name])
        for name, m in summary["rounds"].items()], has_numbers=True)


def cost(summary):
    return ("Without a word of the guests, the warm VM had "
            f"{percent(summary, 'gain_pct')} of the throughput under the best policy "
            "that does not ask.")


def saw(summary):
    """The two closing lines of a run that passed."""
    return [f"You saw a small database grow at the cost of a cold one, with "
            f"{percent(summary, 'gain_pct')} of the throughput that the best policy "
            "without values gave it.",
            f"The cold one came back with {percent(summary, 'restart_pct')} of what it "
            f"had under proportional; {outcome(summary)}"]


def paper(summary):
    """[{what, paper, ours, where}]"""
    told = summary["rounds"]
    order = sorted((n for n in told if told[n]["median_tps"] is not None),
                   key=lambda n: -told[n]["median_tps"])
    b = summary["broker"]
    return [
        row("Ramp-up, median throughput, of the next best policy", "114 % (BALLOON)",
            percent(summary, "gain_pct"), "8.1, figure 8"),
        row("The same, 95th percentile", "126 %", value(summary["p95_gain_pct"], " %"),
            "8.1, figure 8"),
        row("Order of the policies", "vom, balloon, then proportional and equal",
            ", ".join(order) or "not measured", "8.1, figure 8"),
        row("Time between two brokerings", "at least 1 minute of a ramp of 10",
            f"{value(check(summary, 'cool_down_s'), ' s', 1)} at least, of a ramp of "
            f"{b['ramp_s']:g} s", "8.1"),
        row("Memory of both", "26 GB, 3 GB guaranteed to each",
            f"{b['pool_mib']} MiB, {b['min_mib']} MiB guaranteed to each", "8.1"),
        row("Histogram", "at most 11 KB", value(summary["largest_histogram_bytes"], " bytes"), "4")]


WORDS = Words(title=TITLE, lead=LEAD, ablated_lead=ABLATED_LEAD, tiles=tiles, saw=saw, paper=paper,
              ablation="black-box brokering",
              ablation_help="a black-box policy takes the place of the value of memory",
              cost_title="What it costs not to ask", cost=cost,
              saw_ablated=wording.and_cost(
                  "You saw black-box brokering in place of the value of memory.", cost),
              caption=caption, table=table, moves_cpus=False)
