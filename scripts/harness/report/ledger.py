# SPDX-License-Identifier: GPL-2.0-or-later
"""The section of report.html about promises: for each VM and resource what was promised, wanted and
got, and why promises were broken.

A scenario has it when its folder has ledger.json, the answer of `ebbctl --json ledger`
(docs/control-protocol.md, "ledger").
"""
from html import escape

from harness.record.schema import SchemaError

AMOUNTS = ("wanted", "promised", "got", "violated", "unclear")
NUMBERS = ("rate", "metered_s", "num_intervals", "num_violations", *AMOUNTS)
HEAD = (("VM", ""), ("resource", ""), ("promise", "n"), ("metered", "n"), ("wanted", "n"),
        ("due", "n"), ("got", "n"), ("missing", "n"), ("unclear", "n"), ("broken", "n"),
        ("why (the last)", ""))
CPU_UNIT, READS_UNIT = "usec", "ios"
USEC_PER_S = 1e6


def rows_of(answer):
    """The rows of such an answer; SchemaError if something is not there or of another type."""
    rows = answer.get("ledger") if isinstance(answer, dict) else None
    if not isinstance(rows, list):
        raise SchemaError("ledger.json: there is no list \"ledger\"")
    for i, row in enumerate(rows):
        wrong = [name for name in NUMBERS
                 if isinstance(row.get(name), bool) or not isinstance(row.get(name), (int, float))]
        wrong += [name for name in ("vm", "resource", "unit", "cause", "reason")
                  if not isinstance(row.get(name), str)]
        if wrong:
            raise SchemaError(f"ledger.json: row {i}: {', '.join(wrong)}: missing, or wrong type")
    return rows


def section(rows):
    """HTML; rows: of rows_of(), may be empty."""
    if not rows:
        return '<h2>Promises</h2><p class="soft">Nothing was promised to any VM.</p>'
    promises = [row for row in rows if row["rate"] > 0]     # others: I/O charged to the system
    broken = sum(row["num_violations"] for row in rows)
    head = "".join(f'<th class="{cls}">{name}</th>' for name, cls in HEAD)
    return (f'<h2>Promises</h2><p class="soft">The agent\'s ledger: of {len(promises)} promises '
            f'{broken:,} intervals were broken. Of CPU time, wanted is the time in which the VM '
            "had work; due is what was promised for that time; missing is what was due in "
            "intervals that broke the promise and was not given; unclear is what may have been due "
            "as well; broken are such intervals. Of memory, wanted are accesses to records, due "
            "the reads from disk that a dedicated cache would have needed, got those that were "
            "made, missing those beyond the promise. As I/O the latter are charged to "
            "the system.</p>"
            f'<div class="card"><table><tr>{head}</tr>' + "".join(map(_row, rows)) +
            "</table></div>")


def _row(row):
    cells = [(row["vm"], "w"), (row["resource"], "w"), (_rate(row), "n"),
             (f"{row['metered_s']:,.0f} s", "n")]
    cells += [(_amount(row, name), "n") for name in AMOUNTS]
    cells += [(f"{row['num_violations']:,} of {row['num_intervals']:,}", "n"), (_why(row), "")]
    return (f'<tr class="{"bad" if row["num_violations"] else ""}">' +
            "".join(f'<td class="{cls}">{escape(text)}</td>' for text, cls in cells) + "</tr>")


def _rate(row):
    if row["unit"] == CPU_UNIT:
        return f"{row['rate'] * 100 / USEC_PER_S:.4g}% of a CPU"
    if row["unit"] == READS_UNIT:
        return f"a cache of {row['rate']:,.4g} MiB"
    return f"{row['rate']:,.4g} {row['unit']}/s"


def _amount(row, name):
    if row["unit"] == CPU_UNIT:
        return f"{row[name] / USEC_PER_S:,.2f} s"
    return f"{row[name]:,.0f}"


def _why(row):
    return f"{row['cause']}: {row['reason']}" if row["num_violations"] else ""
