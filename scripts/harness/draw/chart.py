# SPDX-License-Identifier: GPL-2.0-or-later
"""Line charts over time as inline SVG: panels that share one time axis. Knows nothing of Ebb."""
import math
from dataclasses import dataclass, field
from html import escape

# Okabe and Ito's palette: told apart with every common kind of colour blindness.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
# A second way to tell lines apart, for print without colour.
DASHES = ("", "7 3", "2 3", "9 3 2 3", "5 2", "1 2")

LEFT, RIGHT, TOP, GAP, BOTTOM = 70, 84, 74, 26, 46
INK, SOFT, GRID = "#1c2733", "#5b6876", "#e4e8ec"


@dataclass
class Line:
    """One line of a panel. points: [(x, y or None)]; None breaks the line."""
    points: list
    colour: str
    dash: str = ""
    width: float = 2.2
    opacity: float = 1.0
    label: str = ""         # written at the line's end
    step: bool = False


@dataclass
class Panel:
    title: str              # with the unit in brackets
    height: int
    lines: list
    top: float = None       # None: from the lines
    rules: list = field(default_factory=list)   # [(y, text)]: horizontal marks


@dataclass
class Mark:
    """A moment: a vertical line through all panels, with a word above them."""
    x: float
    text: str
    colour: str = SOFT
    strong: bool = True


def nice_ticks(low, high, most):
    """Round numbers that cover [low, high] with at most `most` steps."""
    span = max(high - low, 1e-9)
    base = 10 ** math.floor(math.log10(span / most))
    step = next(base * m for m in (1, 2, 5, 10) if span / (base * m) <= most)
    first = math.ceil(low / step - 1e-9)
    ticks = []
    while (first + len(ticks)) * step <= high + step * 1e-9:
        ticks.append(round((first + len(ticks)) * step, 10))
    return ticks


def number(value):
    return f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:g}"


def draw(panels, marks, begin, end, width=1040, legend=(), axis="time [s]"):
    """The whole figure. legend: [(text, colour, dash)]; axis: what goes to the right."""
    plot = width - LEFT - RIGHT
    height = TOP + sum(p.height for p in panels) + GAP * (len(panels) - 1) + BOTTOM

    def at(x):
        return LEFT + plot * (x - begin) / max(end - begin, 1e-9)

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
           f'width="100%" role="img" font-family="inherit" font-size="13" fill="{INK}">']
    out += _legend(legend, width)
    bottom = height - BOTTOM
    out += _marks(marks, at, bottom, begin, end)
    y = TOP
    for panel in panels:
        out += _panel(panel, y, at, plot, begin, end)
        y += panel.height + GAP
    for tick in nice_ticks(begin, end, 12):
        out.append(f'<line x1="{at(tick):.1f}" x2="{at(tick):.1f}" y1="{bottom}" '
                   f'y2="{bottom + 5}" stroke="{SOFT}"/>'
                   f'<text x="{at(tick):.1f}" y="{bottom + 20}" text-anchor="middle" '
                   f'fill="{SOFT}">{number(tick)}</text>')
    out.append(f'<text x="{LEFT + plot / 2:.1f}" y="{height - 6}" text-anchor="middle">'
               f'{escape(axis)}</text></svg>')
    return "\n".join(out)


def _legend(entries, width):
    out, x = [], LEFT
    for text, colour, dash in entries:
        out.append(f'<line x1="{x}" x2="{x + 26}" y1="14" y2="14" stroke="{colour}" '
                   f'stroke-width="3" stroke-dasharray="{dash}"/>'
                   f'<text x="{x + 32}" y="18">{escape(text)}</text>')
        x += 32 + 7.2 * len(text) + 26
        if x > width:
            break
    return out


def _marks(marks, at, bottom, begin, end):
    """Words go to the first of two rows where they do not run into the one before."""
    out, free = [], [LEFT - 60, LEFT - 60]
    for mark in sorted(marks, key=lambda m: m.x):
        if not begin <= mark.x <= end:
            continue
        x = at(mark.x)
        style = 'stroke-width="1.4" stroke-dasharray="4 3"' if mark.strong else \
            'stroke-width="1" stroke-dasharray="1 3"'
        out.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 12}" y2="{bottom}" '
                   f'stroke="{mark.colour}" {style}/>')
        if not mark.text:
            continue
        half = 4.0 * len(mark.text)
        row = 0 if x - half > free[0] else 1
        if row == 1 and x - half <= free[1]:
            continue
        free[row] = x + half + 6
        out.append(f'<text x="{x:.1f}" y="{TOP - 18 - 16 * row}" text-anchor="middle" '
                   f'font-weight="{600 if mark.strong else 400}" fill="{mark.colour}">'
                   f'{escape(mark.text)}</text>')
    return out


def _panel(panel, y0, at, plot, begin, end):
    highest = max([y for line in panel.lines for _, y in line.points if y is not None] +
                  [y for y, _ in panel.rules], default=1.0)
    top = panel.top or highest * 1.06 or 1.0

    def up(value):
        return y0 + panel.height * (1 - min(value, top) / top)

    out = []
    for tick in nice_ticks(0, top, max(3, panel.height // 30)):
        out.append(f'<line x1="{LEFT}" x2="{LEFT + plot}" y1="{up(tick):.1f}" '
                   f'y2="{up(tick):.1f}" stroke="{GRID}"/>'
                   f'<text x="{LEFT - 8}" y="{up(tick) + 4:.1f}" text-anchor="end" '
                   f'fill="{SOFT}">{number(tick)}</text>')
    for value, text in panel.rules:
        out.append(f'<line x1="{LEFT}" x2="{LEFT + plot}" y1="{up(value):.1f}" '
                   f'y2="{up(value):.1f}" stroke="{SOFT}" stroke-dasharray="2 2"/>'
                   f'<text x="{LEFT + plot + 6}" y="{up(value) + 4:.1f}" fill="{SOFT}">'
                   f'{escape(text)}</text>')
    out.append(f'<text transform="translate(16 {y0 + panel.height / 2:.1f}) rotate(-90)" '
               f'text-anchor="middle">{escape(panel.title)}</text>')
    out.append(f'<line x1="{LEFT}" x2="{LEFT + plot}" y1="{y0 + panel.height}" '
               f'y2="{y0 + panel.height}" stroke="{SOFT}"/>')
    for line in panel.lines:
        out += _line(line, at, up, begin, end)
    return out


def _line(line, at, up, begin, end):
    path, pen, last = [], False, None
    for x, y in line.points + [(0, None)]:
        if y is None or not begin <= x <= end:
            if pen and line.step:
                path.append(f"H{at(last[0]):.1f}")
            pen = False
            continue
        if not pen:
            path.append(f"M{at(x):.1f} {up(y):.1f}")
        elif line.step:
            if y == last[1]:
                last = (x, y)
                continue
            path.append(f"H{at(x):.1f}V{up(y):.1f}")
        else:
            path.append(f"L{at(x):.1f} {up(y):.1f}")
        pen, last = True, (x, y)
    if last is None:
        return []
    out = [f'<path d="{"".join(path)}" fill="none" stroke="{line.colour}" '
           f'stroke-width="{line.width}" stroke-dasharray="{line.dash}" '
           f'stroke-opacity="{line.opacity}" stroke-linejoin="round"/>']
    if line.label:
        out.append(f'<text x="{at(last[0]) + 6:.1f}" y="{up(last[1]) + 4:.1f}" font-weight="600" '
                   f'fill="{line.colour}">{escape(line.label)}</text>')
    return out


def draw_rates(curves, looks, axis, begin, end):
    """Throughput by a number. curves: {name: [(x, transactions per second)]}; looks: [(name, what
    the legend says, colour, dashes)]."""
    panel = Panel("throughput [1000 transactions/s]", 320, [
        Line([(x, tps / 1000) for x, tps in curves[name]], colour, dash, width=2.6)
        for name, _, colour, dash in looks])
    return draw([panel], [], begin, end, legend=[look[1:] for look in looks], axis=axis)
