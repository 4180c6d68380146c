# SPDX-License-Identifier: GPL-2.0-or-later
"""Figures 10 and 11 of the paper on flexible resource allocation, drawn again: hot oversubscribed
cores over time, each core over time as a heat map, and the mean of each core with heavy skew."""
from harness.draw import chart, heatmap
from harness.record import cores

from . import verdict
from .plan import MODES, REBALANCED, STATIC

LOOK = {STATIC: (chart.COLOURS[1], "7 3"), REBALANCED: (chart.COLOURS[0], "")}
PARTS = (("bursts", "burst", "bursts end"), ("heavy skew", "skew", "skew end"))
COLUMNS = 4             # of figure 11


def draw(run, _samples, summary):
    """Of the first seed; the others are in the table."""
    return (grids(summary) + "<h2>Hot oversubscribed cores during the bursts</h2>" +
            counts(run, 0) + "<h2>Each core over time, heavy skew</h2>" +
            maps(run, 0, *PARTS[1][1:]) + "<h2>Each core over time, bursts</h2>" +
            maps(run, 0, *PARTS[0][1:]))


def grids(summary):
    parts = []
    for mode in MODES:
        means = summary["modes"][mode][0]["core_means"] if summary["modes"][mode] else {}
        # Keys that went through a file are text.
        parts.append((mode, [means[core] for core in sorted(means, key=int)]))
    return heatmap.grid(parts, COLUMNS)


def counts(run, turn):
    lines, end = [], 1.0
    for mode in MODES:
        found = verdict.hot_intervals(run, mode, turn)
        if not found:
            continue
        begin = verdict.span(run, mode, turn, "burst", "bursts end")[0]
        points = [(t - begin, n) for t, n in sorted(found.items())]
        end = max(end, points[-1][0])
        lines.append(chart.Line(points, *LOOK[mode], width=2.2, step=True))
    return chart.draw([chart.Panel("hot oversubscribed cores", 150, lines,
                                   top=run["host"]["cores"])], [], 0.0, end,
                      legend=[(mode, *LOOK[mode]) for mode in MODES],
                      axis="time since the first burst began [s]")


def cells(run, core, span):
    """The intervals of a core in a span of time, counted from its begin."""
    r = run["rebalance"]
    found = []
    for row in run.get("cores") or []:
        if row.core == core and span[0] < row.t_s <= span[1]:
            end = row.t_s - span[0]
            who = ", ".join(f"{vm} {100 * part:.0f}%" for vm, part in sorted(row.vms.items()))
            found.append(heatmap.Cell(end - row.seconds, end, row.busy,
                                      f"core {core}, {end:.0f} s: {100 * row.busy:.0f}% ({who})",
                                      cores.is_hot(row, r["hot"], r["active"])))
    return found


def maps(run, turn, first, last):
    found, end = [], 1.0
    for mode in MODES:
        span = verdict.span(run, mode, turn, first, last)
        if span is None:
            continue
        end = max(end, span[1] - span[0])
        marks = [(s["t_s"] - span[0], s["vm"]) for s in
                 verdict.steps(run, mode, turn, first) if s["vm"]]
        found.append(heatmap.Map(mode, [(f"core {core}", cells(run, core, span))
                                        for core in range(run["host"]["cores"])], marks))
    return heatmap.draw(found, 0.0, end, "hot and oversubscribed")
