# SPDX-License-Identifier: GPL-2.0-or-later
"""What figure, report and closing words say of the scenarios that compare in slices."""
from . import chart
from .scaleout.verdict import MEMORY, TWO_PHASE
from .tenants.verdict import ENGINE, TENANTS, VMS

SCENARIOS = ("scaleout", "tenants")

TITLES = {"scaleout": "What scaling out costs", "tenants": "A VM per tenant, or a partition"}
LEADS = {
    "scaleout": "Two nodes on {host} run transactions of ten reads, of which 0 to 10 are of the "
                "other node's records: two-phase commit over a socket. Beside it, the same "
                "transactions in one engine, where remote records are memory. Paper: section 4.1, "
                "figure 5.",
    "tenants": "One to four tenants on {host}: in one engine process with a partition and a share "
               "of the workers for each, and in a VM each, on the same number of cores, turn by "
               "turn. Paper: section 4.1, figure 4."}
ABLATED_LEADS = {
    "scaleout": "The same transactions on {host}, but both nodes execute what would be remote "
                "themselves: no messages, no protocol.",
    "tenants": "The same tenants on {host}, but while their VMs are measured something else "
               "computes on each of their CPUs: the cores are not the tenants' own."}
ABLATIONS = {"scaleout": "remote operations executed locally",
             "tenants": "no cores of their own for the tenants' VMs"}
NOT_EXPECTED = " The checks below are the same and are expected to fail here."


def caption(run):
    if run["scenario"] == "scaleout":
        if run["numa_nodes"] > 1:
            remote = "In one engine, remote records lie on another NUMA node."
        else:
            remote = "This machine has one NUMA node: ordinary memory stands in for remote memory."
        return "Throughput of both nodes together, and of one engine; medians of the turns. " \
            "Processes on the machine itself, without VMs. " + remote
    return "Throughput of all tenants together, medians of the turns; with three, one core of " \
        "four is left idle in both set-ups. Emulated host: a core is " \
        f"{run['host']['share']:g} of a real CPU, so ratios mean something, absolute throughput " \
        "does not."


def ablation(summary):
    what = "no operation crossed to the other node" if summary["scenario"] == "scaleout" else \
        "other programs worked on the tenants' cores during the slices of the VMs"
    return f"With the mechanism switched off {what}." + NOT_EXPECTED


def _times(value):
    return "not measured" if value is None else f"{value:.1f}x"


def tiles(summary):
    """[(value, what it is)]"""
    if summary["scenario"] == "scaleout":
        return [(_times(summary["one_remote_cost"]), "less with one remote operation of ten"),
                (_times(summary["all_remote_cost"]), "less with ten"),
                (_times(summary["memory_worst_cost"]), "less, at worst, as remote memory"),
                (f"{summary['committed_transactions']:,}", "transactions committed"),
                (str(summary["failed_transactions"]), "transactions failed")]
    found = [(_percent(p["difference_pct"]),
              f"{p['tenants']} VMs against {p['tenants']} partitions") for p in summary["points"]]
    return found + [(str(summary["failed_transactions"]), "transactions failed")]


def _percent(value):
    return "not measured" if value is None else f"{value:+.1f} %"


def paper(summary):
    if summary["scenario"] == "scaleout":
        return [{"what": "One remote operation of ten, two-phase commit",
                 "paper": "throughput drops around 8x", "ours": _times(summary["one_remote_cost"]),
                 "where": "4.1, figure 5"},
                {"what": "Ten remote operations", "paper": "as with one: it plateaus",
                 "ours": _times(summary["all_remote_cost"]), "where": "4.1, figure 5"},
                {"what": "Remote memory instead, at worst", "paper": "much less than 2PC",
                 "ours": _times(summary["memory_worst_cost"]) +
                 ("" if summary["numa_nodes"] > 1 else ", ordinary memory stands in"),
                 "where": "4.1, figure 5"}]
    return [{"what": f"{p['tenants']} tenants: VMs against partitions",
             "paper": "the same (figure 4)",
             "ours": f"{_percent(p['difference_pct'])}, {p['turns']} turns, +-"
                     f"{p['spread_pct']} %", "where": "4.1, figure 4"}
            for p in summary["points"]]


def saw(summary):
    """The two closing lines of a run that passed, or of an ablation."""
    failed = f"{summary['failed_transactions']} transactions failed, " \
             f"{summary['lost_updates']} updates lost."
    if summary["scenario"] == "scaleout":
        return ["One remote operation of ten cost "
                f"{_times(summary['one_remote_cost'])} of the throughput of two nodes, ten cost "
                f"{_times(summary['all_remote_cost'])}; as memory of one engine, at most "
                f"{_times(summary['memory_worst_cost'])}.", failed]
    return ["A VM per tenant against one engine with partitions: " + ", ".join(
        f"{p['tenants']} tenants {_percent(p['difference_pct'])}" for p in summary["points"]) +
        ".", failed]


def draw(summary):
    """Figure 4 or 5, drawn again."""
    if summary["scenario"] == "scaleout":
        looks = ((TWO_PHASE, "two nodes, two-phase commit", chart.COLOURS[1], ""),
                 (MEMORY, "one engine, remote memory", chart.COLOURS[0], "7 3"))
        lines = {name: summary["curves"][name] for name, *_ in looks}
        axis, begin, end = "remote operations of ten", 0, 10
    else:
        looks = ((ENGINE, "one engine, a partition each", chart.COLOURS[0], "7 3"),
                 (VMS, "a VM each", chart.COLOURS[1], ""))
        lines = {name: [(p["tenants"], p[name]) for p in summary["points"] if name in p]
                 for name, *_ in looks}
        axis, begin, end = "tenants", TENANTS[0], TENANTS[-1]
    panel = chart.Panel("throughput [1000 transactions/s]", 320, [
        chart.Line([(x, tps / 1000) for x, tps in lines[name]], colour, dash, width=2.6)
        for name, _, colour, dash in looks])
    return chart.draw([panel], [], begin, end, legend=[look[1:] for look in looks], axis=axis)
