# SPDX-License-Identifier: GPL-2.0-or-later
"""report.html of a benchmark: one page that needs nothing but a browser."""
from html import escape

from harness.report.page import STYLE

from . import bars, metrics


def render(summary):
    rows = summary["metrics"]
    panels = _panels(rows)
    variants = list(dict.fromkeys(bar[0] for _, groups in panels for _, bars_ in groups
                                  for bar in bars_))
    unit = rows[0]["unit"] if rows else ""
    parts = ["<!doctype html>", '<html lang="en"><head><meta charset="utf-8">',
             '<meta name="viewport" content="width=device-width, initial-scale=1">',
             f"<title>Ebb: {escape(summary['benchmark'])}</title><style>{STYLE}</style></head>",
             f"<body><main><h1>{escape(summary['title'])}</h1>", _tags(summary),
             '<div class="card">', bars.draw(panels, variants, unit),
             '<p class="soft" style="margin:8px 0 0">Bars: medians. Ticks: 99th percentiles, or '
             'the largest of less than 100 values. The scale is logarithmic.</p></div>']
    if summary["notes"]:
        parts.append("<h2>How it was measured</h2><div class=\"card\"><ul>" + "".join(
            f"<li>{escape(n)}</li>" for n in summary["notes"]) + "</ul></div>")
    parts += [_bounds(summary), _table(rows), _details(summary), "</main></body></html>"]
    return "\n".join(parts) + "\n"


def _panels(rows):
    """Those metrics of which there is more than one variant: parts of one variant go only into
    the table, and so does what has another unit than the first one, for all share one scale."""
    panels = {}
    for m in rows:
        if m["unit"] != rows[0]["unit"]:
            continue
        panels.setdefault(m["name"], {}).setdefault(m["size"], []).append(m)
    return [(name, [(size, [(m["variant"], m["median"], m["p99"], _note(m)) for m in ms])
                    for size, ms in sizes.items()])
            for name, sizes in panels.items() if any(len(ms) > 1 for ms in sizes.values())]


def _note(m):
    words = []
    if m["ratio_to_ebb"] not in (None, 1):
        words.append(f"{m['ratio_to_ebb']:,.3g} x ebb")
    if m["failed"]:
        words.append(f"{m['failed']} failed")
    return ", ".join(words)


def _tags(summary):
    words = [{"tcg": "TCG, no KVM", "kvm": "KVM", "none": "no VM"}[summary["accelerator"]],
             summary["host"]["spec"], f"{summary['duration_s']:.0f} s"]
    return "".join(f'<span class="tag">{escape(w)}</span>' for w in words)


def _bounds(summary):
    if not summary["bounds"]:
        return ""
    rows = "".join(f'<tr class="{"" if b["ok"] else "bad"}"><td class="w">'
                   f'{"holds" if b["ok"] else "<b>does not hold</b>"}</td>'
                   f'<td>{escape(b["text"])}</td><td class="n">{_value(b["value"])}</td>'
                   f'<td class="w">{escape(b["bound"])}</td></tr>' for b in summary["bounds"])
    return ('<h2>Bounds</h2><div class="card"><table><tr><th></th><th>what</th>'
            f'<th class="n">measured</th><th>bound</th></tr>{rows}</table></div>')


def _value(value):
    return "not measured" if value is None else f"{value:,g}"


def _table(rows):
    head = "".join(f'<th class="n">{w}</th>' for w in ("median", "p99", "n", "to ebb"))
    body = "".join(
        f"<tr><td>{escape(m['name'])}</td><td class=\"w\">{escape(m['size'])}</td>"
        f"<td class=\"w\">{escape(m['variant'])}</td>"
        f'<td class="n">{metrics.measure(m, "median")}</td>'
        f'<td class="n">{metrics.measure(m, "p99")}</td>'
        f'<td class="n">{m["n"]}{_failed(m)}</td>'
        f'<td class="n">{_ratio(m)}</td></tr>'
        for m in rows)
    return (f'<h2>All numbers</h2><div class="card"><table><tr><th>what</th><th>size</th>'
            f'<th>variant</th>{head}</tr>{body}</table></div>')


def _ratio(m):
    return "" if m["ratio_to_ebb"] is None else f"{m['ratio_to_ebb']:,g}"


def _failed(m):
    return f" ({m['failed']} failed)" if m["failed"] else ""


def _details(summary):
    rows = [("started", summary["started_at"]), ("lasted", f"{summary['duration_s']:.0f} s")]
    rows += sorted(summary["host"].items()) + sorted(summary["versions"].items())
    return '<h2>Run</h2><div class="card"><table>' + "".join(
        f"<tr><th>{escape(str(k))}</th><td>{escape(str(v))}</td></tr>"
        for k, v in rows) + "</table></div>"
