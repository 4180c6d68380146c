# SPDX-License-Identifier: GPL-2.0-or-later
"""What report and closing words say of `reserve`."""

from harness.report import wording
from harness.report.wording import check, count, ms, percent, row, us, value

from ..scenario import Words
from .plan import GREEDY, MEET, NEIGHBOURS, OVERBOOKED

LEAD = ("Tenants on {host} and on a disk that is the bottleneck are promised resources in absolute "
        "numbers, get them whatever the others do, and a meter says where a promise was broken. "
        "Paper: SQLVM, section 4, figures 4 to 7, table 1.")
ABLATED_LEAD = ("The same tenants on {host} with the same loads, but without reservations: they "
                "have maxima only, or no promise at all.")


def caption(run):
    r = run["reserve"]
    meet = f" ({r[MEET]['disk_iops']} in part 1)" if MEET in r["parts"] else ""
    return f"Disk: a throttle node below the volumes lets {r['disk_iops']}{meet} requests per " \
           f"second through, {r['depth']} at a time. Rates are those of intervals of a second, " \
           "from the counters of the volume server."


def tiles(summary):
    """[(value, what it is)]"""
    found = []
    if MEET in summary["parts"]:
        found += [(percent(summary, "meet_mean_off_pct", 2), "off the promised IOPS, at most"),
                  (percent(summary, "meet_intervals_pct", 1),
                   "of all seconds with the promise kept"),
                  (ms(check(summary, "meet_in_force_ms")), "until a changed promise was kept")]
    if GREEDY in summary["parts"]:
        found += [(percent(summary, "greedy_tps_pct"),
                   "of its throughput alone that t1 has beside three greedy tenants"),
                  (percent(summary, "greedy_relative_io_pct", 1),
                   "Relative IO of t1's memory: reads from disk beyond those promised")]
    if NEIGHBOURS in summary["parts"]:
        found += [(percent(summary, "neighbours_cpu_pct", 1),
                   "of a core beside 24 neighbours, half of it promised"),
                  (percent(summary, "neighbours_p99_pct", 1),
                   "p99 of transactions from their arrival, of that with a maximum only, at most")]
    if OVERBOOKED in summary["parts"]:
        found += [(value(check(summary, "overbooked_violated")), "violations when overbooked"),
                  (percent(summary, "overbooked_meter_off_pct", 2),
                   "by which the meter's count of them was off")]
    return found


def table(summary):
    return "".join(wording.table(*part) for part in _tables(summary))


def _tables(summary):
    """(title, head, rows) of each part that was measured."""
    if summary.get("meet"):
        yield ("Part 1", ("VM", "promised", "IOPS, mean", "standard deviation", "of the promise",
                          "seconds with the promise"),
               [(h["vm"], h["promised"], value(h["mean_iops"], "", 1),
                 value(h["std_iops"], "", 1), value(h["mean_pct"], " %", 1),
                 f"{h['kept']} of {h['judged']}") for h in summary["meet"]])
    if summary.get("greedy"):
        yield ("Part 2: throughput of t1, transactions per second",
               ("promise", "beside t1", "measured", "with the CPU time due", "of the core",
                "records read from disk/s", "IOPS"),
               [(r["mode"], _beside(r), value(r["tps"]), value(r["even_tps"]),
                 value(r["cpu_pct"], " %", 1), value(r["reads_ps"]), value(r["iops"]))
                for r in summary["greedy"] if not r["is_turn"]])
        yield ("Part 2: the same, alone and beside three greedy tenants in turn",
               ("turn", "alone", "beside three", "of that alone"),
               [(i, value(alone), value(beside), _part(beside, alone))
                for i, (alone, beside) in enumerate(summary["greedy_turns"], 1)])
    if summary.get("neighbours"):
        n = summary["neighbours"]
        yield ("Part 3 (table 1): p99 from arrival to commit, beside 24 neighbours",
               ("transaction", *n["modes"], "", "measured"),
               [(name, us(t["p99_us"]), us(t["max_only_p99_us"]),
                 _part(t["p99_us"], t["max_only_p99_us"]),
                 f"{count(t['measured'])} / {count(t['max_only_measured'])}")
                for name, t in n["types"].items()])
        yield ("Part 3: t1 with more work than it can do, beside 24 neighbours",
               ("", *n["modes"]),
               [("CPU time of the core", *(value(c, " %", 1) for c in n["cpu_pct"])),
                ("transactions per second", *(value(t) for t in n["tps"]))])
    if summary.get("overbooked"):
        yield ("Part 4", ("tenant", "issued", "violations, metered",
                          "violations, from its requests"),
               [(name, count(t["issued"]), value(t["metered"]), value(t["reckoned"]))
                for name, t in summary["overbooked"].items()])


def _beside(phase):
    if phase["has_loop"]:
        return "a loop"
    return f"{phase['greedy']} greedy" if phase["greedy"] else "nobody"


def _part(number, of):
    return value(100 * number / of, " %", 1) if number and of else "not measured"


def _times(number, of):
    return value(number / of, " times", 1) if number and of else "not measured"


def _halves(summary):
    return ", ".join(f"{value(h['mean_iops'])} of {h['promised']}"
                     for h in summary.get("meet") or ())


def saw(summary):
    """The closing lines of a run that passed."""
    lines = []
    if MEET in summary["parts"]:
        lines.append(f"You saw promises of I/O kept and swapped: {_halves(summary)} IOPS.")
    if GREEDY in summary["parts"]:
        lines.append("Beside three greedy tenants t1 had "
                     f"{percent(summary, 'greedy_tps_pct')} of its throughput alone, "
                     f"{percent(summary, 'greedy_max_only_tps_pct')} with a maximum "
                     f"only and {percent(summary, 'greedy_none_tps_pct')} without any "
                     "promise; its promise of memory was broken in "
                     f"{value(check(summary, 'greedy_memory_violations'))} seconds.")
    if NEIGHBOURS in summary["parts"]:
        lines.append("Beside 24 neighbours that compute, half of a core was promised and "
                     f"{percent(summary, 'neighbours_cpu_pct', 1)} of it came; p99 was "
                     f"{percent(summary, 'neighbours_p99_pct', 1)} of that with a "
                     "maximum only, at most.")
    if OVERBOOKED in summary["parts"]:
        lines.append("When twice as much was promised as there is, the meter counted "
                     f"{value(check(summary, 'overbooked_violated'))} violations, none of them "
                     "in idle time.")
    return lines


def saw_ablated(summary):
    return [f"You saw tenants without reservations ({summary['mode']}).", cost(summary)]


def cost(summary):
    if not summary.get("meet"):
        return "Nobody had a reservation, so nobody could say what was missing."
    return f"The two VMs got {_halves(summary)} IOPS of what they would have been promised."


def paper(summary):
    """[{what, paper, ours, where}]"""
    rows = []
    if MEET in summary["parts"]:
        rows.append(row("IOPS of two tenants, of those promised",
                        "63 of 60, 20 of 20; then swapped", _halves(summary), "4.2, figure 4"))
    if GREEDY in summary["parts"]:
        rows.append(row("Throughput beside three greedy tenants, of that alone",
                        "the same; max-only and baseline some 40 % lower",
                        ", ".join(f"{mode} {percent(summary, name)}" for mode, name in (
                            (summary["mode"], "greedy_tps_pct"),
                            ("max-only", "greedy_max_only_tps_pct"),
                            ("none", "greedy_none_tps_pct"))),
                        "4.3, figure 5"))
        rows.append(row("Relative IO of its memory", "promised: at most 0",
                        percent(summary, "greedy_relative_io_pct", 1), "2.3"))
    if NEIGHBOURS in summary["parts"]:
        rows += [row("CPU beside 24 tenants, 50 % promised", "49.5 %",
                     percent(summary, "neighbours_cpu_pct", 1), "4.2"),
                 row("Throughput beside them, of that with a maximum only", "6 times",
                     _times(*summary["neighbours"]["tps"]), "4.3"),
                 row("p99 by type of transaction, end to end, of that with a maximum only",
                     "some 25 %",
                     ", ".join(f"{name} {_part(t['p99_us'], t['max_only_p99_us'])}"
                               for name, t in summary["neighbours"]["types"].items()) or
                     "not measured", "4.3, table 1")]
    if OVERBOOKED in summary["parts"]:
        rows.append(row("Overbooked twice",
                        "8 tenants of 80 IOPS, some 300 there are; the meter reports violations",
                        f"{value(check(summary, 'overbooked_violated'))} violations, the "
                        f"meter {percent(summary, 'overbooked_meter_off_pct', 2)} off",
                        "4.4, figures 6 and 7"))
    return rows


WORDS = Words(title="Promised, and kept", lead=LEAD, ablated_lead=ABLATED_LEAD, tiles=tiles,
              saw=saw, paper=paper, ablation="no reservations",
              ablation_help="nothing is promised, or with --max-only maxima only",
              cost_title="Without reservations", cost=cost, saw_ablated=saw_ablated,
              caption=caption, table=table, moves_cpus=False)
