# SPDX-License-Identifier: GPL-2.0-or-later
"""What report and closing words say of `scaleout`."""
from harness.report import wording
from harness.report.wording import row

from ..scenario import Words

LEAD = ("Two nodes on {host} run transactions of ten reads, of which 0 to 10 are of the other "
        "node's records: two-phase commit over a socket. Beside it, the same transactions in one "
        "engine, where remote records are memory. Paper: section 4.1, figure 5.")
ABLATED_LEAD = ("The same transactions on {host}, but both nodes execute what would be remote "
                "themselves: no messages, no protocol.")


def caption(run):
    if run["numa_nodes"] > 1:
        remote = "In one engine, remote records lie on another NUMA node."
    else:
        remote = "This machine has one NUMA node: ordinary memory stands in for remote memory."
    return "Throughput of both nodes together, and of one engine; medians of the turns. " \
        "Processes on the machine itself, without VMs. " + remote


def _times(value):
    return "not measured" if value is None else f"{value:.1f}x"


def tiles(summary):
    return [(_times(summary["one_remote_cost"]), "less with one remote operation of ten"),
            (_times(summary["all_remote_cost"]), "less with ten"),
            (_times(summary["memory_worst_cost"]), "less, at worst, as remote memory"),
            (f"{summary['committed_transactions']:,}", "transactions committed"),
            (str(summary["failed_transactions"]), "transactions failed")]


def cost(_summary):
    return "With the mechanism switched off no operation crossed to the other node."


def saw(summary):
    return ["One remote operation of ten cost "
            f"{_times(summary['one_remote_cost'])} of the throughput of two nodes, ten cost "
            f"{_times(summary['all_remote_cost'])}; as memory of one engine, at most "
            f"{_times(summary['memory_worst_cost'])}.", wording.outcome(summary)]


def paper(summary):
    return [row("One remote operation of ten, two-phase commit", "throughput drops around 8x",
                _times(summary["one_remote_cost"]), "4.1, figure 5"),
            row("Ten remote operations", "as with one: it plateaus",
                _times(summary["all_remote_cost"]), "4.1, figure 5"),
            row("Remote memory instead, at worst", "much less than 2PC",
                _times(summary["memory_worst_cost"]) +
                ("" if summary["numa_nodes"] > 1 else ", ordinary memory stands in"),
                "4.1, figure 5")]


WORDS = Words(title="What scaling out costs", lead=LEAD, ablated_lead=ABLATED_LEAD, tiles=tiles,
              saw=saw, paper=paper, ablation="remote operations executed locally",
              ablation_help="remote operations are executed locally",
              cost_title="Without the mechanism", cost=cost, saw_ablated=saw, caption=caption,
              moves_cpus=False)
