# SPDX-License-Identifier: GPL-2.0-or-later
"""What report and closing words say of `migrate`."""
from harness.report import wording
from harness.report.wording import row, value

from ..scenario import Words
from .plan import ABRUPT, size_words

LEAD = ("Databases on {host} move from one server to another while clients use them. Clients "
        "follow connection by connection, as fast as response times on both servers allow; records "
        "follow when they are used. Paper: Downtime-free live migration, section 4, tables 4 to "
        "10, figures 2, 3 and 6.")
ABLATED_LEAD = ("The same databases on {host}, but all connections move at once: nobody waits "
                "until the other server has warmed up.")
MIB = 1 << 20


def caption(run):
    where = "Servers on the machine itself." if run["accelerator"] == "none" else \
        "Servers in a VM each."
    return ("Of the first move at an adaptive rate, alone and beside other tenants: connections "
            "and response times on both nodes, what each has of the database, and everybody's "
            f"response times. {where} Response times depend on the machine, their ratios less so.")


def _judged(summary):
    return [m for m in summary["moves"] if m["is_judged"]]


def _most(summary, name):
    known = [m[name] for m in _judged(summary) if m[name] is not None]
    return max(known) if known else None


def tiles(summary):
    return [(value(sum(m["failed"] for m in _judged(summary))),
             "requests failed in moves at an adaptive rate"),
            (value(_most(summary, "ratio"), "x", 2), "the steady response time, at most"),
            (value(_most(summary, "pause_p99_ms"), " ms", 1), "p99 of waiting for a unit, at most"),
            (value(_most(summary, "received_ratio"), "x", 2), "what was cached was sent, at most"),
            (value(sum(m["failed"] for m in summary["moves"] if m["mode"] == ABRUPT)),
             "requests failed in abrupt moves")]


def cost(summary):
    return (f"With all connections moved at once "
            f"{sum(m['failed'] for m in _judged(summary))} requests failed; response times rose to "
            f"{value(_most(summary, 'ratio'), 'x', 1)} the steady ones in the worst move.")


def saw(summary):
    return [f"You saw {len(_judged(summary))} databases move at an adaptive rate: "
            f"{sum(m['failed'] for m in _judged(summary))} requests failed, "
            f"{value(summary['lost_updates'])} updates were lost, and response times rose to "
            f"{value(_most(summary, 'ratio'), 'x', 2)} the steady ones at most.",
            "Moves at other rates: " + ("; ".join(
                f"{m['mode']} {m['failed']} requests failed" for m in summary["moves"]
                if not m["is_judged"]) or "none") + "."]


def saw_ablated(summary):
    return ["You saw databases move with all their clients at once.", cost(summary)]


def table(summary):
    """The paper's tables 4 to 10."""
    rows = [(m["table"], m["mode"], _what(m), value(m["migration_s"], " s", 1), _impact(m),
             f"{m['failed']:,} ({m['failed_pct']:g} %)",
             f"{value(m['steady_ms'], '', 1)} to {value(m['impact_ms'], ' ms', 1)}",
             _mib(m["cached_bytes"]), _mib(m["received_bytes"]), _mib(m["sent_bytes"]),
             value(m["cpu_cost"], "", 2), value(m["pause_p99_ms"], " ms", 1),
             value(m["others_pct"], " %", 1) if m["tenants"] else "")
            for m in summary["moves"]]
    return wording.table(
        "Moves, as in the paper's tables",
        ("table", "rate", "load", "migration", "impact", "failed", "response time", "cached",
         "received", "sent back", "CPU cost", "pause p99", "others"), rows)


def _what(m):
    where = f", {m['memory_mib']} MiB of memory" if m["memory_mib"] else ""
    beside = f", {m['tenants']} other tenants" if m["tenants"] else ""
    work = f"S/U/I/D {'/'.join(map(str, m['mix']))}" if m["mix"] else "like TPC-C"
    return f"{size_words(m['rows'], m['warehouses'])}, {m['rate']}/s, {work}{where}{beside}"


def _impact(m):
    return ("" if m["impact_has_ended"] else "at least ") + value(m["impact_s"], " s", 1)


def _mib(number):
    return value(None if number is None else number / MIB, " MiB", 1)


def paper(summary):
    return [row(f"{m['mode']}, {_what(m)}", m["paper"],
                f"{value(m['migration_s'], ' s', 1)}, {_impact(m)}, {m['failed']} failed, "
                f"{value(m['steady_ms'], '', 1)} to {value(m['impact_ms'], ' ms', 1)}; "
                f"{_mib(m['received_bytes'])} of {_mib(m['cached_bytes'])}, "
                f"{_mib(m['sent_bytes'])} back; CPU {value(m['cpu_cost'], '', 2)}",
                f"4.4, table {m['table']}")
            for m in summary["moves"] if m["paper"]]


WORDS = Words(title="A database moves while clients use it", lead=LEAD, ablated_lead=ABLATED_LEAD,
              tiles=tiles, saw=saw, paper=paper,
              ablation="all connections move at once",
              ablation_help="all connections move at once",
              cost_title="Without holding clients back", cost=cost, saw_ablated=saw_ablated,
              caption=caption, table=table, moves_cpus=False)
