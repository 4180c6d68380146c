# SPDX-License-Identifier: GPL-2.0-or-later
"""What report and closing words say of `rebalance`."""
from harness.report import wording
from harness.report.wording import count, outcome, percent, row, us, value

from ..scenario import Words
from .plan import MODES, REBALANCED, STATIC

TITLE = "Eight databases share cores, twice as many CPUs as there are"
LEAD = ("Eight VMs of two CPUs run on {host}. One after the other has much to do for a while; then "
        "half of them compute, and those are on the same cores. First cores stay as they were "
        "given, then they are given anew where they are hot. Paper: Flexible resource allocation, "
        "section 8.2, figures 10 and 11.")
ABLATED_LEAD = ("The same VMs on {host}, twice with cores that stay as they were given: nothing is "
                "rebalanced.")


def caption(run):
    r = run["rebalance"]
    return f"Use of a core in windows of {r['window_s']:g} s: CPU time of the vCPU threads in " \
           f"its cgroup as the host's kernel counts it. Hot: {100 * r['hot']:.0f} % or more, by " \
           f"two VMs or more. A burst lasts {r['burst_s']:g} s." + \
        wording.on_emulated_host(run, "shapes and ratios")


def tiles(summary):
    """[(value, what it is)]"""
    return [(percent(summary, "hot_pct", 1),
             "hot oversubscribed core-intervals, of those without rebalancing"),
            (percent(summary, "tps_pct"),
             "throughput of the active VMs with heavy skew, of that without"),
            (percent(summary, "p99_pct", 1), "their p99, of that without"),
            (count(summary["moves"]), "VMs moved"),
            (count(summary["failed_transactions"]), "transactions failed"),
            (count(summary["lost_updates"]), "updates lost")]


def table(summary):
    """Each seed in both modes, as HTML."""
    head = ("seed", "mode", "hot core-intervals", "in intervals", "skew: throughput", "p50", "p95",
            "p99")
    rows = []
    for i, seed in enumerate(summary["rebalance"]["seeds"]):
        for mode in MODES:
            m = summary["modes"][mode][i]
            s = m["skew"]
            rows.append((seed["seed"], mode, value(m["hot"]),
                         f"{value(m['hot_intervals'])} of {value(m['intervals'])}",
                         value(s.get("tps"), "/s"), us(s.get("p50_us")), us(s.get("p95_us")),
                         us(s.get("p99_us"))))
    return wording.table("The seeds", head, rows)


def cost(summary):
    m = next(iter(summary["modes"][REBALANCED]), {})
    return f"Cores were hot and oversubscribed in {value(m.get('hot'))} core-intervals of the " \
           f"bursts; with heavy skew p99 was {us(m.get('skew', {}).get('p99_us'))}."


def saw(summary):
    """The two closing lines of a run that passed."""
    return ["You saw cores being given anew where two databases met on one: "
            f"{percent(summary, 'hot_pct', 1)} of the hot oversubscribed "
            "core-intervals were left.",
            f"With heavy skew the active ones had {percent(summary, 'tps_pct')} of the "
            f"throughput and {percent(summary, 'p99_pct')} of the p99 of cores that "
            f"stay; {outcome(summary)}"]


def paper(summary):
    """[{what, paper, ours, where}]"""
    def three(mode):
        s = summary["modes"][mode][0]["skew"] if summary["modes"][mode] else {}
        return " / ".join(us(s.get(name)) for name in ("p50_us", "p95_us", "p99_us"))

    def hot(mode):
        return ", ".join(value(m["hot"]) for m in summary["modes"][mode])
    r = summary["rebalance"]
    return [
        row("Oversubscription", "8 databases of 8 CPUs, 32 cores",
            f"8 VMs of {r['cpus']} CPUs, {summary['host']['cores']} cores", "8.2"),
        row("Hot oversubscribed core-intervals, static", "2642.8 in 3 hours, of 15 s",
            f"{hot(STATIC)}, of {r['window_s']:g} s", "8.2, figure 10"),
        row("The same, rebalanced", "7.4 (0.3 %)",
            f"{hot(REBALANCED)} ({percent(summary, 'hot_pct', 1)})", "8.2, figure 10"),
        row("Heavy skew: throughput, rebalanced of static", "120 % (335 of 280 TPS)",
            percent(summary, "tps_pct"), "8.2, figure 11"),
        row("p50 / p95 / p99, static", "141 / 250 / 297 ms", three(STATIC), "8.2"),
        row("p50 / p95 / p99, rebalanced", "16 / 32 / 47 ms", three(REBALANCED), "8.2")]


WORDS = Words(title=TITLE, lead=LEAD, ablated_lead=ABLATED_LEAD, tiles=tiles, saw=saw, paper=paper,
              ablation="no rebalancing", ablation_help="nothing is rebalanced",
              cost_title="What it costs to stay", cost=cost,
              saw_ablated=wording.and_cost(
                  "You saw databases on cores that stay as they were given.", cost),
              caption=caption, table=table, moves_cpus=False)
