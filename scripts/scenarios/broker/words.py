# SPDX-License-Identifier: GPL-2.0-or-later
"""What report and closing words say of `broker`."""
from harness.report.wording import check, count, outcome, value

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
           f"Load: {b['load']}. " \
           f"Emulated host: a core is {run['host']['share']:g} of a real CPU, so shapes and " \
           "ratios mean something, absolute throughput does not."


def tiles(summary):
    """[(value, what it is)]"""
    told = summary["rounds"]
    return [(value(check(summary, "gain_pct"), " %"),
             "median throughput of the ramp-up, of that under the best other policy"),
            (value(summary["p95_gain_pct"], " %"), "the same of the 95th percentiles"),
            (value(check(summary, "restart_pct"), " %"),
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
    rows = "".join(
        f"<tr><td>{name}</td>" + "".join(f'<td class="n">{cell}</td>' for cell in (
            value(m["median_tps"], "/s"), value(m["p95_tps"], "/s"),
            value(m["ramp_reads"], digits=2),
            value(m["warm_held_first_mib"], " MiB"), value(m["warm_held_mib"], " MiB"),
            value(m["restart_tps"], "/s"), value(m["restart_reads"], digits=2),
            *(value(tps, "/s") for tps in m["both_tps"].values()),
            summary["brokerings"][name])) + "</tr>"
        for name, m in summary["rounds"].items())
    return ('<h2>The rounds</h2><div class="card"><table><tr>' +
            "".join(f'<th class="{"n" if i else ""}">{h}</th>' for i, h in enumerate(head)) +
            f"</tr>{rows}</table></div>")


def cost(summary):
    return ("Without a word of the guests, the warm VM had "
            f"{value(check(summary, 'gain_pct'), ' %')} of the throughput under the best policy "
            "that does not ask.")


def saw(summary):
    """The two closing lines of a run that passed."""
    return [f"You saw a small database grow at the cost of a cold one, with "
            f"{value(check(summary, 'gain_pct'), ' %')} of the throughput that the best policy "
            "without values gave it.",
            f"The cold one came back with {value(check(summary, 'restart_pct'), ' %')} of what it "
            f"had under proportional; {outcome(summary)}"]


def paper(summary):
    """[{what, paper, ours, where}]"""
    told = summary["rounds"]
    order = sorted((n for n in told if told[n]["median_tps"] is not None),
                   key=lambda n: -told[n]["median_tps"])
    b = summary["broker"]
    return [
        {"what": "Ramp-up, median throughput, of the next best policy", "paper": "114 % (BALLOON)",
         "ours": value(check(summary, "gain_pct"), " %"), "where": "8.1, figure 8"},
        {"what": "The same, 95th percentile", "paper": "126 %",
         "ours": value(summary["p95_gain_pct"], " %"), "where": "8.1, figure 8"},
        {"what": "Order of the policies", "paper": "vom, balloon, then proportional and equal",
         "ours": ", ".join(order) or "not measured", "where": "8.1, figure 8"},
        {"what": "Time between two brokerings", "paper": "at least 1 minute of a ramp of 10",
         "ours": f"{value(check(summary, 'cool_down_s'), ' s', 1)} at least, of a ramp of "
                 f"{b['ramp_s']:g} s", "where": "8.1"},
        {"what": "Memory of both", "paper": "26 GB, 3 GB guaranteed to each",
         "ours": f"{b['pool_mib']} MiB, {b['min_mib']} MiB guaranteed to each", "where": "8.1"},
        {"what": "Histogram", "paper": "at most 11 KB",
         "ours": value(summary["largest_histogram_bytes"], " bytes"), "where": "4"}]


def saw_ablated(summary):
    return ["You saw black-box brokering in place of the value of memory.", cost(summary)]


WORDS = Words(
    title=TITLE,
    lead=LEAD,
    ablated_lead=ABLATED_LEAD,
    tiles=tiles,
    saw=saw,
    paper=paper,
    ablation="black-box brokering",
    ablation_help="a black-box policy takes the place of the value of memory",
    cost_title="What it costs not to ask",
    cost=cost,
    saw_ablated=saw_ablated,
    caption=caption,
    table=table,
    moves_cpus=False)
