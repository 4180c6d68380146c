# SPDX-License-Identifier: GPL-2.0-or-later
"""What report and closing words say of `scale`."""
from harness.report import wording
from harness.report.wording import check, row, value

from ..scenario import Words

LEAD = ("One VM starts with {startup} CPU on {host}, takes one more every {dwell:g} s until it "
        "holds them all, and gives them back one by one, while its engine executes transactions. "
        "Paper: section 4.1, figure 3.")
ABLATED_LEAD = ("The same VM on {host}, with the CPUs that it starts with and no more: static "
                "allocation, for comparison with the run in which it grows and shrinks.")


def tiles(summary):
    error = check(summary, "plateau_error_pct")
    return [("not measured" if error is None else f"{error:g} %",
             "furthest plateau from proportional")] + wording.cpu_tiles(summary)


def _took(times):
    return "an unknown time" if times["median"] is None else f"{times['median']:.0f} ms"


def saw(summary):
    return ["You saw one database VM go from its startup CPU to "
            f"{wording.cores(summary['host'])} and back by hot-plug, without stopping.",
            f"A CPU took {_took(summary['cpu_add_ms'])} to add and "
            f"{_took(summary['cpu_remove_ms'])} to remove (medians); {wording.outcome(summary)}"]


def paper(summary):
    sizes = [p["cpus"] for p in summary.get("plateaus", [])]
    error = value(check(summary, "plateau_error_pct"), " % from proportional at most", 1)
    symmetry = value(check(summary, "symmetry_pct"), " % between up and down", 1)
    return [row("Growth", "1 to 16 CPUs, one every 5 s (2 sockets)",
                f"{min(sizes)} to {max(sizes)} CPUs" if sizes else "not measured", "4.1, figure 3"),
            row("Throughput against CPUs held", "rises and falls symmetrically",
                f"{error}, {symmetry}", "4.1, figure 3")]


WORDS = Words(title="One database grows to the whole server and back", lead=LEAD,
              ablated_lead=ABLATED_LEAD, tiles=tiles, saw=saw, paper=paper)
