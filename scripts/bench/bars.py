# SPDX-License-Identifier: GPL-2.0-or-later
"""Bars on a logarithmic scale as inline SVG: medians as bars, the 99th percentile as a tick."""
import math
from html import escape

from harness.draw.chart import COLOURS, GRID, INK, SOFT, number

LEFT, RIGHT, BAR, GROUP_GAP, PANEL_GAP, HEAD = 170, 190, 15, 9, 34, 26


def draw(panels, variants, unit, width=1040):
    """panels: [(title, [(group, [(variant, median, p99, note)])])]. All share one scale."""
    values = [v for _, groups in panels for _, bars in groups for bar in bars
              for v in bar[1:3] if v]
    low = 10 ** math.floor(math.log10(min(values, default=1)))
    high = 10 ** math.ceil(math.log10(max(values, default=10)) + 1e-9)
    high = max(high, low * 10)
    span = math.log10(high / low)

    def at(value):
        return LEFT + (width - LEFT - RIGHT) * math.log10(max(value, low) / low) / span

    colours = {v: COLOURS[i % len(COLOURS)] for i, v in enumerate(variants)}
    body, y = [], 34
    for title, groups in panels:
        top = y + HEAD
        bottom = top + sum(len(bars) * BAR + GROUP_GAP for _, bars in groups)
        body.append(f'<text x="{LEFT}" y="{y + 14}" font-weight="600">{escape(title)}</text>')
        body += _grid(low, high, at, top, bottom)
        y = top + GROUP_GAP / 2
        for group, bars in groups:
            body.append(f'<text x="{LEFT - 10}" y="{y + len(bars) * BAR / 2 + 4:.1f}" '
                        f'text-anchor="end">{escape(group)}</text>')
            for bar in bars:
                body += _bar(bar, y, at, colours, unit)
                y += BAR
            y += GROUP_GAP
        body += _ticks(low, high, at, bottom, unit)
        y = bottom + PANEL_GAP
    legend = _legend(variants, colours)
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {y:.0f}" '
                      f'width="100%" role="img" font-family="inherit" font-size="13" '
                      f'fill="{INK}">'] + legend + body + ["</svg>"])


def _powers(low, high):
    return [low * 10 ** i for i in range(round(math.log10(high / low)) + 1)]


def _grid(low, high, at, top, bottom):
    return [f'<line x1="{at(v):.1f}" x2="{at(v):.1f}" y1="{top}" y2="{bottom}" stroke="{GRID}"/>'
            for v in _powers(low, high)]


def _ticks(low, high, at, bottom, unit):
    return [f'<text x="{at(v):.1f}" y="{bottom + 16:.1f}" text-anchor="middle" fill="{SOFT}">'
            f'{number(v)} {escape(unit)}</text>' for v in _powers(low, high)]


def _bar(bar, y, at, colours, unit):
    variant, median, p99, note = bar
    if median is None:
        return [f'<text x="{LEFT + 6}" y="{y + BAR - 3:.1f}" fill="{colours[variant]}">'
                f'{escape(note or "no value")}</text>']
    end = at(max(median, p99 or 0))
    out = [f'<rect x="{LEFT}" y="{y:.1f}" width="{max(at(median) - LEFT, 1):.1f}" '
           f'height="{BAR - 2}" fill="{colours[variant]}"/>']
    if p99:
        out.append(f'<line x1="{at(median):.1f}" x2="{at(p99):.1f}" y1="{y + BAR / 2 - 1:.1f}" '
                   f'y2="{y + BAR / 2 - 1:.1f}" stroke="{INK}"/>'
                   f'<line x1="{at(p99):.1f}" x2="{at(p99):.1f}" y1="{y + 1:.1f}" '
                   f'y2="{y + BAR - 3:.1f}" stroke="{INK}" stroke-width="1.6"/>')
    out.append(f'<text x="{end + 6:.1f}" y="{y + BAR - 4:.1f}" font-size="12" fill="{SOFT}">'
               f'{median:,g} {escape(unit)}{escape(", " + note if note else "")}</text>')
    return out


def _legend(variants, colours):
    out, x = [], LEFT
    for v in variants:
        out.append(f'<rect x="{x}" y="6" width="14" height="12" fill="{colours[v]}"/>'
                   f'<text x="{x + 20}" y="17">{escape(v)}</text>')
        x += 20 + 7.4 * len(v) + 26
    return out
