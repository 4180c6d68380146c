# SPDX-License-Identifier: GPL-2.0-or-later
"""What report and closing words say of `memory`."""
from harness.report.wording import check, count, ms

from ..scenario import Words

TITLE = "Memory of a database goes and comes back"
LEAD = ("One VM on {host} keeps its table in pool memory of both nodes. While it executes "
        "transactions, the operator takes the CPUs and the memory of one node and later gives them "
        "back: the engine moves its cold records to disk, releases the memory, and merges the "
        "records back. Paper: section 4.6, figure 13.")
ABLATED_LEAD = ("The same VM on {host}, with an engine that cannot move records to disk: what it "
                "does not give in time, the host takes, and the records in it are lost.")
MIB = 1 << 20


def tiles(summary):
    """[(value, what it is)]"""
    return [
        (ms(summary["demand_met_ms"]) if summary["demand_met_ms"] is not None else "never",
         "until the node's memory was given back"),
        (ms(summary["memory_back_ms"]) if summary["memory_back_ms"] is not None else "never",
         "until it was held again"),
        (ms(summary["mem_release_ms"]["median"]), "for a release, median"),
        (ms(summary["mem_add_ms"]["median"]), "for an add, median"),
        (f"{summary['revoked_bytes'] / MIB:,.0f} MiB", "taken by force"),
        (count(check(summary, "lost_records")), "records lost"),
        (count(summary["failed_transactions"]), "transactions failed")]


def cost(summary):
    """What being without the mechanism has cost, in one sentence or two."""
    lost, failed = check(summary, "lost_records"), summary["failed_transactions"]
    return (f"The host took {summary['revoked_bytes'] / MIB:,.0f} MiB by force; "
            f"{count(lost)} records were lost with them and {count(failed)} transactions failed.")


def saw(summary):
    """The two closing lines of a run that passed."""
    flat = summary["plateaus"]
    gone = flat["before"]["held_bytes"] - flat["without"]["held_bytes"]
    rss = flat["before"]["host_rss_bytes"] - flat["without"]["host_rss_bytes"]
    return [f"You saw a database give back {gone / MIB:.0f} MiB and the CPUs of a node within "
            f"{ms(summary['demand_met_ms'])} and take them again, without stopping; "
            f"{rss / MIB:.0f} MiB of the host's memory went free meanwhile.",
            f"The whole table was verified before, without and after; "
            f"{check(summary, 'lost_records')} records were lost and "
            f"{summary['failed_transactions']} transactions failed."]


def paper(summary):
    """[{what, paper, ours, where}]"""
    def value(name, unit):
        v = check(summary, name)
        return "not measured" if v is None else f"{v:g} {unit}"

    def median(d):
        return "not measured" if d["median"] is None else \
            f"{ms(d['median'])} median, {ms(d['p95'])} p95, n = {d['n']}"
    return [
        {"what": "Adding memory, as the engine sees it", "paper": "10-20 ms",
         "ours": median(summary["mem_add_ms"]), "where": "4.6"},
        {"what": "Releasing memory, as the engine sees it", "paper": "10-20 ms",
         "ours": median(summary["mem_release_ms"]), "where": "4.6"},
        {"what": "Records to disk and memory given back",
         "paper": "70-75 s for about 9 GB, SATA disk over QEMU",
         "ours": f"{ms(summary['demand_met_ms'])} for {value('held_before_mib', 'MiB')}, "
                 f"{summary['memory']['disk']}", "where": "4.6, figure 13"},
        {"what": "Throughput without the node", "paper": "about half; its records not used",
         "ours": value("tps_without_pct", "% of before; all records used"),
         "where": "4.6, figure 13"},
        {"what": "Throughput after its return", "paper": "as before",
         "ours": value("tps_after_pct", "% of before"), "where": "4.6, figure 13"}]


def saw_ablated(summary):
    return ["You saw an engine that cannot move records to disk.", cost(summary)]


WORDS = Words(
    title=TITLE,
    lead=LEAD,
    ablated_lead=ABLATED_LEAD,
    tiles=tiles,
    saw=saw,
    paper=paper,
    ablation="no anti-caching",
    ablation_help="the engine cannot move records to disk",
    cost_title="What it costs to have no anti-caching",
    cost=cost,
    saw_ablated=saw_ablated)
