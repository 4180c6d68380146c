# SPDX-License-Identifier: GPL-2.0-or-later
"""Figures 4 to 7 of the paper, drawn again. Table 1 is a table (words.py)."""
from harness.draw import chart
from harness.judge import promises
from harness.judge.promises import Look

from .plan import GREEDY, MEET, OVERBOOKED


def _rates(rows, value=lambda growth: growth.issued):
    """[(time, per second)] of intervals of a second."""
    looks = [Look(*row) for row in rows]
    return [(i.begin_s, value(i.grown) / i.grown.t_s) for i in promises.intervals(looks)]


def draw_meet(m):
    if "end_s" not in m:
        return ""
    begin = m["begin_s"]
    names = sorted(m["looks"])
    lines = [chart.Line([(t - begin, y) for t, y in _rates(m["looks"][name])], chart.COLOURS[i],
                        chart.DASHES[i], label=name, step=True)
             for i, name in enumerate(names)]
    panel = chart.Panel("requests issued [1/s]", 260, lines,
                        rules=[(m["high"], f"{m['high']}"), (m["low"], f"{m['low']}")])
    return "<h2>Part 1 (figure 4): I/O of two VMs with the same load</h2>" + chart.draw(
        [panel], [chart.Mark(m["swapped_s"] - begin, "promises swapped")], 0.0,
        m["end_s"] - begin, legend=[(name, chart.COLOURS[i], chart.DASHES[i])
                                    for i, name in enumerate(names)])


def _reads(said):
    """[(time, per second)] of intervals of a second: two lines may be heard at the same moment."""
    points, first = [], said[0] if said else None
    for row in said:
        if row[0] - first[0] >= 1.0:
            points.append((first[0], (row[2] - first[2]) / (row[0] - first[0])))
            first = row
    return points


def draw_greedy(g):
    """Time counts from the last phase of each mode in which t1 is alone."""
    if not g.get("phases"):
        return ""
    modes = list(dict.fromkeys(p["mode"] for p in g["phases"]))
    work, reads, marks, length = [], [], [], 1.0
    for i, mode in enumerate(modes):
        phases = [p for p in g["phases"] if p["mode"] == mode and not p["is_turn"]]
        phases = phases[sum(p["has_loop"] for p in phases):][:g["tenants"] + 1]
        begin, end = phases[0]["begin_s"], phases[-1]["end_s"]
        length = max(length, end - begin)
        said = [row for row in g["said"] if begin < row[0] <= end]
        look = (chart.COLOURS[i], chart.DASHES[i])
        work.append(chart.Line([(t - begin, tps) for t, tps, _ in said], *look, step=True))
        reads.append(chart.Line([(t - begin, y) for t, y in _reads(said)], *look, step=True))
        if not marks:
            marks = [chart.Mark(p["begin_s"] - g["settle_s"] - begin, f"{p['greedy']} greedy")
                     for p in phases[1:]]
    return ("<h2>Part 2 (figure 5): t1 as greedy tenants are added</h2>" + chart.draw(
        [chart.Panel("transactions of t1 [1/s]", 260, work),
         chart.Panel("disk reads [1/s]", 120, reads)], marks, 0.0, length,
        legend=[(mode, chart.COLOURS[i], chart.DASHES[i]) for i, mode in enumerate(modes)]))


def draw_overbooked(o):
    if "looks" not in o:
        return ""
    begin, length = o["begin_s"], o["end_s"] - o["begin_s"]
    others = [name for name in sorted(o["looks"]) if name != o["idler"]]
    shown = ((others[0], "always works"), (o["idler"], "idle half of the time"))
    issued, violated = [], []
    for i, (name, _) in enumerate(shown):
        look = (chart.COLOURS[i], chart.DASHES[i])
        for lines, value in ((issued, lambda g: g.issued),
                             (violated, lambda g: g.violated)):
            points = [(t - begin, y) for t, y in _rates(o["looks"][name], value)]
            lines.append(chart.Line(points, *look, step=True))
    return ("<h2>Part 4 (figures 6 and 7): two of eight tenants, overbooked</h2>" + chart.draw(
        [chart.Panel("requests issued [1/s]", 170, issued,
                     rules=[(o["iops"], f"{o['iops']}")]),
         chart.Panel("violated [1/s]", 170, violated)], [], 0.0, length,
        legend=[(f"{name}, {words}", chart.COLOURS[i], chart.DASHES[i])
                for i, (name, words) in enumerate(shown)]))


DRAWINGS = {MEET: draw_meet, GREEDY: draw_greedy, OVERBOOKED: draw_overbooked}


def draw(run, _samples, _summary):
    r = run["reserve"]
    return "".join(DRAWINGS[part](r[part]) for part in r["parts"] if part in DRAWINGS)
