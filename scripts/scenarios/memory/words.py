# SPDX-License-Identifier: GPL-2.0-or-later
"""What report and closing words say of `memory`."""
from harness.report import wording
from harness.report.wording import check, count, ms, row, value

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
        row("Adding memory, as the engine sees it", "10-20 ms", median(summary["mem_add_ms"]),
            "4.6"),
        row("Releasing memory, as the engine sees it", "10-20 ms",
            median(summary["mem_release_ms"]), "4.6"),
        row("Records to disk and memory given back", "70-75 s for about 9 GB, SATA disk over QEMU",
            f"{ms(summary['demand_met_ms'])} for {value('held_before_mib', 'MiB')}, "
            f"{summary['memory']['disk']}", "4.6, figure 13"),
        row("Throughput without the node", "about half; its records not used",
            value("tps_without_pct", "% of before; all records used"), "4.6, figure 13"),
        row("Throughput after its return", "as before", value("tps_after_pct", "% of before"),
            "4.6, figure 13")]


WORDS = Words(title=TITLE, lead=LEAD, ablated_lead=ABLATED_LEAD, tiles=tiles, saw=saw, paper=paper,
              ablation="no anti-caching", ablation_help="the engine cannot move records to disk",
              cost_title="What it costs to have no anti-caching", cost=cost,
              saw_ablated=wording.and_cost(
                  "You saw an engine that cannot move records to disk.", cost))
