# SPDX-License-Identifier: GPL-2.0-or-later
"""What report and closing words say of `contention`, `peak` and `isolate`."""
from .memory.words import check, count, ms

TITLES = {
    "contention": "A database gives back the CPUs that contention makes useless",
    "peak": "A database takes CPUs while traffic peaks",
    "isolate": "Two databases, a socket each",
}
LEADS = {
    "contention": "One VM holds all of {host} while its transactions are spread over the table. "
                  "Then they crowd on a few records, and the engine finds out by trying that a "
                  "socket is enough; when they spread again, it takes the other one back. Nobody "
                  "tells it: it measures throughput. Paper: section 4.4, figures 9 and 10.",
    "peak": "One VM starts with the CPUs of one socket of {host}. Transactions arrive whether or "
            "not workers are free; every {dwell:g} s their rate doubles or halves. The engine "
            "takes CPUs of the other socket as the arrivals need them, and gives them back. Paper: "
            "section 4.5, figures 11 and 12.",
    "isolate": "One VM runs on both sockets of {host} until a second one comes. Under the policy "
               "{policy} each then has a socket of its own, with the hyperthreads; for comparison, "
               "in the same run, both run under the policy fair, which gives each CPU a core. "
               "Paper: section 4.3, figures 7 and 8. What is seen here comes from cores and "
               "threads alone: an emulated host has no caches and no memory of its own to share "
               "or to keep apart, which is the other part of what the paper measured.",
}
ABLATED_LEADS = {
    "contention": "The same VM on {host}, with an engine that takes every CPU that is offered and "
                  "keeps it, whatever it brings.",
    "peak": "The same VM on {host}, with the CPUs that it starts with and no more: static "
            "allocation.",
    "isolate": "The same VMs on {host} under the policy fair all the time: either may be on "
               "both sockets, and no two threads of a core are given out.",
}
ABLATIONS = {"contention": "the engine keeps all CPUs", "peak": "static allocation",
             "isolate": "policy fair"}
SCENARIOS = tuple(TITLES)


def value(number, unit="", digits=0):
    return "not measured" if number is None else f"{number:,.{digits}f}{unit}"


def tiles(summary):
    """[(value, what it is)]"""
    own = {"contention": _contention_tiles, "peak": _peak_tiles, "isolate": _isolate_tiles}
    return own[summary["scenario"]](summary) + [
        (ms(summary["cpu_add_ms"]["median"]), "to add a CPU, median"),
        (ms(summary["cpu_remove_ms"]["median"]), "to give one back, median"),
        (count(summary["failed_transactions"]), "transactions failed"),
        (count(summary["lost_updates"]), "updates lost")]


def _contention_tiles(summary):
    return [(value(check(summary, "tps_high_pct"), " %"),
             "throughput with a socket, of that with all CPUs, at high contention"),
            (value(check(summary, "given_back_s"), " s", 1), "until a socket was given back"),
            (value(check(summary, "taken_again_s"), " s", 1), "until it was taken again")]


def _peak_tiles(summary):
    window = "1 s" if summary["window_s"] >= 1 else f"{summary['window_s'] * 1000:.0f} ms"
    return [(value(check(summary, "lowest_window_pct"), " %"),
             f"of what arrived was committed in the worst {window}"),
            (value(check(summary, "served_pct"), " %", 1), "over the whole run"),
            (count(summary["longest_queue"]), "transactions waited at most")]


def _isolate_tiles(summary):
    return [(value(check(summary, "gain_pct"), " %"),
             "throughput apart, of that under the policy fair"),
            (value(summary["first_apart_pct"], " %"), "of the first tenant's, of that alone")]


def cost(summary):
    """What being without the mechanism has cost, in one sentence or two."""
    if summary["scenario"] == "contention":
        return "All CPUs were held all the time, for a throughput of " \
               f"{value((summary.get('tps') or {}).get('high_all'))} transactions/s at high " \
               "contention."
    if summary["scenario"] == "peak":
        served = [v for v in summary["served_in_peaks_pct"] if v is not None]
        worst = f"{min(served):.0f} %" if served else "an unknown part"
        return f"In the worst peak {worst} of what arrived was committed; up to " \
               f"{count(summary['longest_queue'])} transactions waited."
    return "No socket was anybody's own, and each CPU was on a core of its own; the second " \
           "thread of each core stayed unused."


def saw(summary):
    """The two closing lines of a run that passed."""
    lost = f"{summary['failed_transactions']} transactions failed, {summary['lost_updates']} " \
           "updates lost."
    if summary["scenario"] == "contention":
        return ["You saw an engine give back a socket that contention had made useless, "
                f"{check(summary, 'given_back_s'):.1f} s after it rose, and take it again.",
                f"With half the CPUs it had {check(summary, 'tps_high_pct'):.0f} % of the "
                f"throughput of all; {lost}"]
    if summary["scenario"] == "peak":
        return ["You saw an engine take CPUs when traffic doubled and give them back when it "
                f"halved, {len(summary['peaks'])} times.",
                f"In the worst window {check(summary, 'lowest_window_pct'):.0f} % of what arrived "
                f"was committed; {lost}"]
    return ["You saw two databases on a socket each, with its hyperthreads, and a core per CPU.",
            f"Apart they had {check(summary, 'gain_pct'):.0f} % of the throughput of the latter; "
            f"{lost}"]


def paper(summary):
    """[{what, paper, ours, where}]"""
    own = {"contention": _contention_paper, "peak": _peak_paper, "isolate": _isolate_paper}
    return own[summary["scenario"]](summary)


def _contention_paper(summary):
    tps = summary.get("tps") or {}
    return [{"what": "High contention: a socket, of all CPUs",
             "paper": "more than 100 % (figures 9, 10)",
             "ours": value(check(summary, "tps_high_pct"), " %"), "where": "4.4, figure 10"},
            {"what": "High contention with all CPUs, of low contention",
             "paper": "a fraction (figure 10, point 1)",
             "ours": value(100 * tps["high_all"] / tps["low"], " %")
             if tps.get("high_all") and tps.get("low") else "not measured",
             "where": "4.4, figure 10"},
            {"what": "How the engine knows", "paper": "the VM monitor reports contention",
             "ours": "it tries fewer CPUs and measures throughput", "where": "4.4"}]


def _peak_paper(summary):
    served = [v for v in summary["served_in_peaks_pct"] if v is not None]
    return [{"what": "Doubled traffic: committed of what arrived",
             "paper": "100 % elastic, 50 % static (figure 11)",
             "ours": f"{min(served):.0f} % in the worst peak" if served else "not measured",
             "where": "4.5, figure 11"},
            {"what": "Dips", "paper": "very small, within 100 ms (figure 12)",
             "ours": f"{summary['windows_below']} of {summary['windows']} windows of "
                     f"{summary['window_s']:g} s below 80 %, "
                     f"{summary['windows_below_paused']} of them while the machine itself stood "
                     f"still; before, without any exchange, {summary['control_below']} of "
                     f"{summary['control_windows']}", "where": "4.5, figure 12"},
            {"what": "How traffic doubles", "paper": "each worker sleeps half of the time",
             "ours": "twice as many transactions arrive", "where": "4.5"}]


def _isolate_paper(summary):
    return [{"what": "A socket each, of shared sockets", "paper": "about 135 % (figures 7, 8)",
             "ours": value(check(summary, "gain_pct"), " %") + " of policy fair (sockets shared "
             f"{value(summary['sockets_shared_fair_pct'])} % of the time); no caches",
             "where": "4.3, figure 8"},
            {"what": "First tenant with one socket, of two",
             "paper": "about 80 %: threads for cores",
             "ours": value(summary["first_apart_pct"], " %"), "where": "4.3, figure 8"}]
