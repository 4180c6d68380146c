# SPDX-License-Identifier: GPL-2.0-or-later
"""What report and closing words say of `place`."""
from harness.report import wording
from harness.report.wording import check, row, value

from ..scenario import Words
from .plan import PAIRS_ARU

LEAD = ("Forty simulated hosts for a week, computed on {host}: databases arrive and grow, and "
        "VMs are moved from hosts that run short. A placer that estimates the probability of "
        "violations from the demand of earlier VMs (prv), weighs moves by what they disturb (mc) "
        "and keeps room for new VMs (aru) against the same without look-ahead (plb). "
        "Paper: Flexible resource allocation, section 8.3, figures 12 to 14.")
ABLATED_LEAD = ("The same simulated hosts, computed on {host}, with a placer that does not look "
                "ahead in the place of the one that does.")


def caption(run):
    place = run["place"]
    filled, dropped = (sum({r["traces"]: r[name] for r in place["runs"]}.values())
                       for name in ("filled", "dropped"))
    text = f"Means of {len(place['seeds'])} seeds. CPU of traces: {', '.join(place['traces'])}; " \
           "memory and disk are made up (ebbctl(1), simulate --place)."
    if filled or dropped:
        text += f" {filled} values of short holes were filled, {dropped} rows left out."
    return text


def _times(number):
    return value(number, "x", 2)


def tiles(summary):
    """[(value, what it is)]"""
    return [(_times(check(summary, "violations_times_fewer")), "fewer violations"),
            (_times(check(summary, "failovers_times_fewer")), "fewer failovers"),
            (value(check(summary, "disruption_less_pct"), " %"), "less disruption with move costs"),
            (value(check(summary, "room"), "", 3), "of the databases find hosts")]


def table(summary):
    """The combinations beside one another, as HTML."""
    head = ("placer", "violations", "failovers", "of new VMs", "disruption", "all failovers",
            "databases refused")
    return "".join(wording.table(f"{traces}, means of the seeds", head, [
        (name, value(c["violations"], "", 1), value(c["failovers"], "", 1),
         value(c["failovers_new"], "", 1), _minutes(c["disruption_s"]),
         _minutes(c["failover_s"]), value(c["refused"], "", 1))
        for name, c in told.items()], has_numbers=True)
        for traces, told in summary["combinations"].items())


def _minutes(seconds):
    return value(None if seconds is None else seconds / 60, " min", 1)


def cost(summary):
    return ("Without look-ahead there were "
            f"{_times(check(summary, 'violations_times_fewer'))} fewer violations than with the "
            "plain placer.")


def saw(summary):
    """The two closing lines of a run that passed."""
    return ["You saw a placer that looks ahead have "
            f"{_times(check(summary, 'violations_times_fewer'))} fewer violations and "
            f"{_times(check(summary, 'failovers_times_fewer'))} fewer failovers.",
            "Move costs took away "
            f"{value(check(summary, 'disruption_less_pct'), ' %')} of the disruption."]


def paper(summary):
    """[{what, paper, ours, where}]"""
    return [row("Violations without look-ahead, of those with it", "1.83x",
                _each(summary, "violations"), "8.3, figure 12"),
            row("Failovers, the same", "1.67x", _each(summary, "failovers"), "8.3, figure 12"),
            row("The same two, neither with move costs nor with room for new VMs", "1.83x, 1.67x",
                "; ".join(f"{t} {_times(v['violations'])}, {_times(v['failovers'])}" for t, v in
                          summary["times_fewer_alone"].items()), "8.3, figure 12"),
            row("Violations on a real cluster", "2.4x", "simulated only", "8.3, figure 13"),
            row("Disruption with move costs", "less by a significant percentage", "; ".join(
                f"{t}: " + ", ".join(f"{before} {value(v, ' %')} less" for before, v in
                                     found.items())
                for t, found in summary["disruption_less_pct"].items()), "8.3, figure 14"),
            row("Failovers of new VMs with room for them (aru)", "fewer", ", ".join(
                f"{before} {summary['new_failovers'][before]}, with it "
                f"{summary['new_failovers'][after]}" for before, after in PAIRS_ARU),
                "8.3, figure 14")]


def _each(summary, name):
    return "; ".join(f"{t} {_times(v[name])}" for t, v in summary["times_fewer"].items())


WORDS = Words(title="Placement that looks ahead", lead=LEAD, ablated_lead=ABLATED_LEAD,
              tiles=tiles, saw=saw, paper=paper, ablation="no look-ahead",
              ablation_help="no placer looks ahead", cost_title="Without look-ahead", cost=cost,
              saw_ablated=wording.and_cost("You saw placement without look-ahead.", cost),
              caption=caption, table=table, moves_cpus=False)
