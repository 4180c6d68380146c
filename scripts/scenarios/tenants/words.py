# SPDX-License-Identifier: GPL-2.0-or-later
"""What report and closing words say of `tenants`."""
from harness.report import wording
from harness.report.wording import row

from ..scenario import Words

LEAD = ("One to four tenants on {host}: in one engine process with a partition and a share of the "
        "workers for each, and in a VM each, on the same number of cores, turn by turn. Paper: "
        "section 4.1, figure 4.")
ABLATED_LEAD = ("The same tenants on {host}, but while their VMs are measured something else "
                "computes on each of their CPUs: the cores are not the tenants' own.")


def caption(run):
    return "Throughput of all tenants together, medians of the turns; with three, one core of " \
        "four is left idle in both set-ups." + wording.on_emulated_host(run, "ratios")


def _percent(value):
    return "not measured" if value is None else f"{value:+.1f} %"


def tiles(summary):
    return [(_percent(p["difference_pct"]),
             f"{p['tenants']} VMs against {p['tenants']} partitions")
            for p in summary["points"]] + [
        (str(summary["failed_transactions"]), "transactions failed")]


def cost(_summary):
    return "With the mechanism switched off other programs worked on the tenants' cores during " \
           "the slices of the VMs."


def saw(summary):
    return ["A VM per tenant against one engine with partitions: " + ", ".join(
        f"{p['tenants']} tenants {_percent(p['difference_pct'])}" for p in summary["points"]) +
        ".", wording.outcome(summary)]


def paper(summary):
    return [row(f"{p['tenants']} tenants: VMs against partitions", "the same (figure 4)",
                f"{_percent(p['difference_pct'])}, {p['turns']} turns, +-{p['spread_pct']} %",
                "4.1, figure 4")
            for p in summary["points"]]


WORDS = Words(title="A VM per tenant, or a partition", lead=LEAD, ablated_lead=ABLATED_LEAD,
              tiles=tiles, saw=saw, paper=paper,
              ablation="no cores of their own for the tenants' VMs",
              ablation_help="the VMs' cores are not their own",
              cost_title="Without the mechanism", cost=cost, saw_ablated=saw, caption=caption,
              moves_cpus=False)
