# SPDX-License-Identifier: GPL-2.0-or-later
"""Heat maps as inline SVG: rows of cells over a common axis of time, and plain grids. Knows nothing
of Ebb."""
from dataclasses import dataclass, field
from html import escape

from .chart import INK, SOFT, nice_ticks, number

LEFT, RIGHT, TOP, GAP, BOTTOM, ROW = 70, 84, 58, 40, 44, 20
# Light to dark, so that it can be read in grey as well.
STOPS = ((0.0, (247, 251, 255)), (0.35, (158, 202, 225)), (0.6, (253, 190, 110)),
         (0.85, (227, 74, 51)), (1.0, (103, 0, 13)))
NOTHING = "#e4e8ec"
EDGE = "#56b4e9"        # of marked cells, which are dark


def colour(part):
    """Of a value between 0 and 1; None: not known."""
    if part is None:
        return NOTHING
    part = min(1.0, max(0.0, part))
    for (a, low), (b, high) in zip(STOPS, STOPS[1:]):
        if part <= b:
            mix = (part - a) / (b - a)
            return "#" + "".join(f"{round(x + (y - x) * mix):02x}" for x, y in zip(low, high))
    return NOTHING


@dataclass
class Cell:
    begin: float
    end: float
    part: float             # None: not known
    text: str = ""          # shown when pointed at
    marked: bool = False    # outlined


@dataclass
class Map:
    title: str
    rows: list              # [(label, [Cell])]
    marks: list = field(default_factory=list)   # [(t, word)]


def draw(maps, begin, end, marked, width=1040, axis="time [s]"):
    """marked: what outlined cells are."""
    plot = width - LEFT - RIGHT
    height = TOP + sum(ROW * len(m.rows) for m in maps) + GAP * (len(maps) - 1) + BOTTOM

    def at(t):
        return LEFT + plot * (min(end, max(begin, t)) - begin) / max(end - begin, 1e-9)

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
           f'width="100%" role="img" font-family="inherit" font-size="13" fill="{INK}">',
           *_scale(width, marked)]
    y = TOP
    for m in maps:
        out += _map(m, y, at, begin, end)
        y += ROW * len(m.rows) + GAP
    bottom = y - GAP
    for tick in nice_ticks(begin, end, 12):
        out.append(f'<text x="{at(tick):.1f}" y="{bottom + 18}" text-anchor="middle" '
                   f'fill="{SOFT}">{number(tick)}</text>')
    out.append(f'<text x="{LEFT + plot / 2:.1f}" y="{height - 6}" text-anchor="middle">'
               f'{escape(axis)}</text></svg>')
    return "\n".join(out)


def _scale(width, marked):
    """The legend: what colours and outlines mean."""
    out, x = [f'<text x="{LEFT}" y="14">0 %</text>'], LEFT + 34
    for i in range(21):
        out.append(f'<rect x="{x + 9 * i}" y="3" width="9" height="13" '
                   f'fill="{colour(i / 20)}"/>')
    out.append(f'<text x="{x + 9 * 21 + 6}" y="14">100 %</text>')
    out.append(f'<text x="{width - RIGHT}" y="14" text-anchor="end" fill="{SOFT}">'
               f'outlined: {escape(marked)}</text>')
    return out


def _map(m, y0, at, begin, end):
    out = [f'<text x="{LEFT}" y="{y0 - 8}" font-weight="600">{escape(m.title)}</text>']
    for i, (label, cells) in enumerate(m.rows):
        y = y0 + ROW * i
        out.append(f'<text x="{LEFT - 8}" y="{y + ROW - 6}" text-anchor="end" fill="{SOFT}">'
                   f'{escape(label)}</text>')
        for c in cells:
            if c.end <= begin or c.begin >= end:
                continue
            edge = f' stroke="{EDGE}" stroke-width="2"' if c.marked else ""
            out.append(f'<rect x="{at(c.begin):.2f}" y="{y + 1}" '
                       f'width="{max(0.3, at(c.end) - at(c.begin)):.2f}" height="{ROW - 2}" '
                       f'fill="{colour(c.part)}"{edge}>'
                       f'<title>{escape(c.text)}</title></rect>')
    bottom = y0 + ROW * len(m.rows)
    free = LEFT + 8 * len(m.title)
    for t, word in m.marks:
        if not begin <= t <= end:
            continue
        out.append(f'<line x1="{at(t):.1f}" x2="{at(t):.1f}" y1="{y0 - 4}" y2="{bottom}" '
                   f'stroke="{INK}" stroke-dasharray="3 3"/>')
        if word and at(t) > free:
            out.append(f'<text x="{at(t) + 3:.1f}" y="{y0 - 8}" fill="{SOFT}">{escape(word)}'
                       '</text>')
            free = at(t) + 10 + 7 * len(word)
    return out


def grid(parts, columns, width=1040):
    """parts: [(title, [part or None])] side by side, each as a grid of coloured cells with
    their values in percent."""
    cell_w, cell_h = 74, 34
    rows = max(-(-len(values) // columns) for _, values in parts)
    step = (width - LEFT) / max(1, len(parts))
    height = 40 + rows * cell_h + 10
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
           f'width="100%" role="img" font-family="inherit" font-size="14" fill="{INK}">']
    for n, (title, values) in enumerate(parts):
        x0 = LEFT + step * n
        out.append(f'<text x="{x0:.1f}" y="22" font-weight="600">{escape(title)}</text>')
        for i, part in enumerate(values):
            x, y = x0 + cell_w * (i % columns), 34 + cell_h * (i // columns)
            ink = "#ffffff" if part is not None and part > 0.75 else INK
            text = "?" if part is None else f"{100 * part:.0f}%"
            out.append(f'<rect x="{x:.1f}" y="{y}" width="{cell_w - 2}" height="{cell_h - 2}" '
                       f'fill="{colour(part)}" stroke="#c8d0d8"/>'
                       f'<text x="{x + cell_w / 2 - 1:.1f}" y="{y + cell_h / 2 + 4:.0f}" '
                       f'text-anchor="middle" fill="{ink}">{text}</text>')
    return "\n".join(out) + "</svg>"
