# SPDX-License-Identifier: GPL-2.0-or-later
"""Figures 12 to 14 of the paper on flexible resource allocation, drawn again."""
from html import escape

from harness.draw import chart

from .plan import COMBINATIONS, ONE_RATIO, PLAIN, RATIOS, SUBJECT

LOOKS = ((PLAIN, chart.COLOURS[1], ""), (SUBJECT, chart.COLOURS[0], "7 3"))
WIDTH, ROW, LABEL = 1040, 22, 130


def draw(run, _samples, summary):
    parts = []
    for traces in run["place"]["traces"]:
        parts += [_title(f"{traces}: violations and failovers by over-subscription (figure 12)"),
                  by_ratio(summary["curves"][traces]),
                  _title(f"{traces}: violations up to each day, over-subscription {ONE_RATIO:g} "
                         "(figure 13)"), by_day(run["place"], traces),
                  _title(f"{traces}: combinations, over-subscription {ONE_RATIO:g} (figure 14)"),
                  bars(summary["combinations"][traces])]
    return "\n".join(parts)


def _title(text):
    return f"<h2>{escape(text)}</h2>"


def _legend():
    return [(name, colour, dash) for name, colour, dash in LOOKS]


def by_ratio(curves):
    panels = [chart.Panel(f"{name} in a week", 200, [
        chart.Line([(x, y) for x, y in curves[placer][name]], colour, dash, width=2.6)
        for placer, colour, dash in LOOKS]) for name in ("violations", "failovers")]
    return chart.draw(panels, [], RATIOS[0], RATIOS[-1], legend=_legend(),
                      axis="over-subscription")


def by_day(place, traces):
    lines, end = [], 1
    for placer, colour, dash in LOOKS:
        runs = [r["days"] for r in place["runs"] if (r["traces"], r["ratio"], r["as"]) ==
                (traces, ONE_RATIO, placer)]
        sums, points = 0.0, [(0, 0)]
        for i, days in enumerate(zip(*runs)):
            sums += sum(day["violations"] for day in days) / len(runs)
            points.append((i + 1, sums))
        end = max(end, points[-1][0])
        lines.append(chart.Line(points, colour, dash, width=2.6))
    return chart.draw([chart.Panel("violations", 200, lines)], [], 0, end, legend=_legend(),
                      axis="day")


def bars(combinations):
    """Two rows of bars for each placer: failovers, and minutes of disruption."""
    most = [max((c[name] or 0 for c in combinations.values()), default=0) or 1
            for name in ("failovers", "disruption_s")]
    height = ROW * (2 * len(COMBINATIONS) + 1)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="100%" '
           f'role="img" font-family="inherit" font-size="13" fill="{chart.INK}">']
    for i, placer in enumerate(COMBINATIONS):
        told = combinations[placer]
        rows = ((told["failovers"], most[0], "failovers", 1, chart.COLOURS[0]),
                (told["disruption_s"], most[1], "min of disruption", 60, chart.COLOURS[4]))
        for k, (value, top, what, unit, colour) in enumerate(rows):
            y = ROW * (2 * i + k) + 4
            length = (WIDTH - LABEL - 190) * (value or 0) / top
            text = "not measured" if value is None else f"{value / unit:,.1f} {what}"
            out.append(f'<rect x="{LABEL}" y="{y}" width="{length:.1f}" height="{ROW - 6}" '
                       f'fill="{colour}"/><text x="{LABEL + length + 8:.1f}" y="{y + 13}">'
                       f'{text}</text>')
        out.append(f'<text x="{LABEL - 10}" y="{ROW * (2 * i + 1) + 5}" text-anchor="end">'
                   f'{escape(placer)}</text>')
    return "\n".join(out + ["</svg>"])
