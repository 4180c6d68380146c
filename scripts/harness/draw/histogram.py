# SPDX-License-Identifier: GPL-2.0-or-later
"""What memory is worth, as inline SVG: for each VM its buckets side by side, as wide as they are
large and as high as they are worth (logarithmic). Knows nothing of Ebb but the unit."""
import math
from html import escape

from .chart import GRID, INK, SOFT, nice_ticks, number

LEFT, RIGHT, TOP, GAP, BOTTOM, HEIGHT = 92, 24, 30, 46, 44, 150


def bars(buckets):
    """[(from MiB, to MiB, value)] by rising value; buckets: [(value, KiB, node)]."""
    found, at = [], 0.0
    for value, kib, _node in sorted(buckets, key=lambda x: (x[0], x[2])):
        if kib > 0:
            found.append((at, at + kib / 1024, value))
            at += kib / 1024
    return found


def scale(values):
    """Decades that cover all values above zero: (lowest, highest) exponents of ten."""
    logs = [math.log10(v) for v in values if v > 0]
    if not logs:
        return 0, 1
    low, high = math.floor(min(logs)), math.ceil(max(logs))
    return low, max(high, low + 1)


def below(buckets, cutoff):
    """MiB that are worth less than the cut-off."""
    return sum(kib for value, kib, _node in buckets if value < cutoff) / 1024


def draw(parts, width=1040):
    """parts: [(title, buckets, colour, cut-off or None)]; all on the same axes."""
    low, high = scale([v for _, buckets, _, cutoff in parts
                       for v in [*(x[0] for x in buckets), cutoff or 0]])
    widest = max([sum(x[1] for x in buckets) / 1024 for _, buckets, *_ in parts], default=0) or 1.0
    plot, height = width - LEFT - RIGHT, TOP + len(parts) * (HEIGHT + GAP) + BOTTOM - GAP

    def at(mib):
        return LEFT + plot * mib / widest

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
           f'width="100%" role="img" font-family="inherit" font-size="13" fill="{INK}">']
    y = TOP
    for title, buckets, colour, cutoff in parts:
        out += _part(title, bars(buckets), colour, cutoff, y, at, plot, low, high)
        y += HEIGHT + GAP
    bottom = y - GAP
    for tick in nice_ticks(0, widest, 12):
        out.append(f'<text x="{at(tick):.1f}" y="{bottom + 18}" text-anchor="middle" '
                   f'fill="{SOFT}">{number(tick)}</text>')
    out.append(f'<text x="{LEFT + plot / 2:.1f}" y="{height - 6}" text-anchor="middle">memory '
               'by rising value [MiB]</text></svg>')
    return "\n".join(out)


def _part(title, found, colour, cutoff, y0, at, plot, low, high):
    def up(value):
        # Memory of value 0 is still seen, as a line at the foot.
        part = 0.0 if value <= 0 else (math.log10(value) - low) / (high - low)
        return y0 + HEIGHT * (1 - min(1.0, max(0.012, part)))

    out = [f'<text x="{LEFT}" y="{y0 - 8}" font-weight="600" fill="{colour}">{escape(title)}'
           '</text>']
    for power in range(low, high + 1):
        out.append(f'<line x1="{LEFT}" x2="{LEFT + plot}" y1="{up(10 ** power):.1f}" '
                   f'y2="{up(10 ** power):.1f}" stroke="{GRID}"/>'
                   f'<text x="{LEFT - 8}" y="{up(10 ** power) + 4:.1f}" text-anchor="end" '
                   f'fill="{SOFT}">1e{power}</text>')
    for begin, end, value in found:
        out.append(f'<rect x="{at(begin):.2f}" y="{up(value):.1f}" '
                   f'width="{max(0.4, at(end) - at(begin)):.2f}" '
                   f'height="{y0 + HEIGHT - up(value):.1f}" fill="{colour}" fill-opacity="0.75">'
                   f'<title>{end - begin:.2f} MiB worth up to {value:,} ns/s per MiB</title>'
                   '</rect>')
    if cutoff:
        out.append(f'<line x1="{LEFT}" x2="{LEFT + plot}" y1="{up(cutoff):.1f}" '
                   f'y2="{up(cutoff):.1f}" stroke="{INK}" stroke-dasharray="6 3"/>'
                   f'<text x="{LEFT + plot}" y="{up(cutoff) - 4:.1f}" text-anchor="end">cut-off'
                   '</text>')
    out.append(f'<line x1="{LEFT}" x2="{LEFT + plot}" y1="{y0 + HEIGHT}" y2="{y0 + HEIGHT}" '
               f'stroke="{SOFT}"/><text transform="translate(18 {y0 + HEIGHT / 2:.1f}) '
               'rotate(-90)" text-anchor="middle" font-size="12">ns/s per MiB</text>')
    return out
