# SPDX-License-Identifier: GPL-2.0-or-later
"""What report and closing words say of `peak`."""
from harness.report import wording
from harness.report.wording import check, count, percent, row, value

from ..scenario import Words

LEAD = ("One VM starts with the CPUs of one socket of {host}. Transactions arrive whether or not "
        "workers are free; every {dwell:g} s their rate doubles or halves. The engine takes CPUs "
        "of the other socket as the arrivals need them, and gives them back. Paper: section 4.5, "
        "figures 11 and 12.")
ABLATED_LEAD = ("The same VM on {host}, with the CPUs that it starts with and no more: static "
                "allocation.")


def tiles(summary):
    window = "1 s" if summary["window_s"] >= 1 else f"{summary['window_s'] * 1000:.0f} ms"
    return [(percent(summary, "lowest_window_pct"),
             f"of what arrived was committed in the worst {window}"),
            (percent(summary, "served_pct", 1), "over the whole run"),
            (count(summary["longest_queue"]), "transactions waited at most"),
            *wording.give_tiles(summary)]


def _worst(summary):
    """Percent committed in the worst peak; None: not known of any."""
    return min((v for v in summary["served_in_peaks_pct"] if v is not None), default=None)


def cost(summary):
    worst = _worst(summary)
    part = "an unknown part" if worst is None else f"{worst:.0f} %"
    return f"In the worst peak {part} of what arrived was committed; up to " \
           f"{count(summary['longest_queue'])} transactions waited."


def saw(summary):
    return ["You saw an engine take CPUs when traffic doubled and give them back when it halved, "
            f"{len(summary['peaks'])} times.",
            f"In the worst window {check(summary, 'lowest_window_pct'):.0f} % of what arrived was "
            f"committed; {wording.outcome(summary)}"]


def paper(summary):
    return [row("Doubled traffic: committed of what arrived",
                "100 % elastic, 50 % static (figure 11)",
                value(_worst(summary), " % in the worst peak"), "4.5, figure 11"),
            row("Dips", "very small, within 100 ms (figure 12)",
                f"{summary['windows_below']} of {summary['windows']} windows of "
                f"{summary['window_s']:g} s below 80 %, "
                f"{summary['windows_below_paused']} of them while the machine itself stood "
                f"still; before, without any exchange, {summary['control_below']} of "
                f"{summary['control_windows']}", "4.5, figure 12"),
            row("How traffic doubles", "each worker sleeps half of the time",
                "twice as many transactions arrive", "4.5")]


WORDS = Words(title="A database takes CPUs while traffic peaks", lead=LEAD,
              ablated_lead=ABLATED_LEAD, tiles=tiles, saw=saw, paper=paper,
              cost_title="What it costs to do without", cost=cost,
              saw_ablated=wording.and_cost(
                  "You saw the run without the mechanism: static allocation.", cost))
