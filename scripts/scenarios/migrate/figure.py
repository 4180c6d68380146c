# SPDX-License-Identifier: GPL-2.0-or-later
"""Figures 2, 3 and 6 of the paper, drawn again."""
from harness.draw import chart

from . import verdict

NODES = (("source", chart.COLOURS[1], "7 3"), ("target", chart.COLOURS[0], ""))
OTHERS = ("other tenants", chart.COLOURS[2], "2 3")
MIB = 1 << 20


def draw(run, _samples, _summary):
    cases = run["migrate"]["cases"]
    alone = _chosen(case for case in cases if not case["tenants"])
    beside = _chosen(case for case in cases if case["tenants"])
    parts = []
    if alone:
        parts += [_connections(alone), _cached(alone)]
    if beside:
        parts.append(_tenants(beside))
    return "".join(parts)


def _chosen(cases):
    """The first of those that are judged, or the first of all; None: there is none."""
    cases = list(cases)
    return next((case for case in cases if case["is_judged"]), cases[0] if cases else None)


def _title(figure, what, case):
    return f"<h2>Figure {figure}: {what} ({case['name']})</h2>"


def _rows(rows, case):
    """[(seconds since the order, row)] of the time that is drawn."""
    return [(row["t_s"] - case["order_s"], row) for row in rows
            if row["seconds"] > 0.5 and case["steady_s"] < row["t_s"] <= case["end_s"]]


def _frame(panels, case, legend):
    moved_s = verdict.moved_at(case)
    marks = [chart.Mark(0.0, "the move begins")]
    if moved_s:
        marks.append(chart.Mark(moved_s - case["order_s"], "all clients moved", strong=False))
    if case["over_s"]:
        marks.append(chart.Mark(case["over_s"] - case["order_s"], "all units moved", strong=False))
    return chart.draw(panels, marks, case["steady_s"] - case["order_s"],
                      case["end_s"] - case["order_s"], legend=legend)


def _response(case, rows):
    return [chart.Line([(t, row["nodes"][i]["mean_us"] / 1000 if row["nodes"][i]["done"] else None)
                        for t, row in rows], colour, dash)
            for i, (_, colour, dash) in enumerate(NODES)]


def _connections(case):
    rows = _rows(case["load"], case)
    moves = chart.Line([(t, row["moves"]) for t, row in rows], chart.INK, step=True)
    where = [chart.Line([(t, row["nodes"][i]["connections"]) for t, row in rows], colour, dash)
             for i, (_, colour, dash) in enumerate(NODES)]
    return _title(2, "connections move", case) + _frame(
        [chart.Panel("moved per second", 110, [moves]), chart.Panel("connections", 130, where),
         chart.Panel("response time [ms]", 150, _response(case, rows))], case, NODES)


def _looks(case, what, name, unit=1):
    """[(seconds since the order, value)] of looks at a node or at the CPU time."""
    return [(look["t_s"] - case["order_s"], None if look[name] is None else look[name] / unit)
            for look in case["looks"][what] if case["steady_s"] < look["t_s"] <= case["end_s"]]


def _cached(case):
    cached, received = ([chart.Line(_looks(case, node, name, MIB), colour, dash)
                         for node, colour, dash in NODES]
                        for name in ("cached_bytes", "received_bytes"))
    return _title(3, "what each node has cached", case) + _frame(
        [chart.Panel("cached [MiB]", 150, cached), chart.Panel("received [MiB]", 110, received)],
        case, NODES)


def _use(case, node):
    """[(seconds since the order, CPUs used)], over a second or so: a look alone is too short."""
    points = _looks(case, "cpu", node)
    return [(b[0], (b[1] - a[1]) / (b[0] - a[0])) for a, b in zip(points, points[4:])]


def _tenants(case):
    rows = _rows(case["load"], case)
    own = chart.Line([(t, row["mean_us"] / 1000 if row["done"] else None) for t, row in rows],
                     chart.INK)
    seconds = {}
    for others in case["others"]:
        for t, row in _rows(others, case):
            seconds.setdefault(round(t), []).append(row)
    others = chart.Line([(t, verdict.mean_us(here) / 1000) for t, here in sorted(seconds.items())
                         if verdict.mean_us(here)], *OTHERS[1:])
    use = [chart.Line(_use(case, name), colour, dash) for name, colour, dash in NODES]
    return _title(6, "among other tenants", case) + _frame(
        [chart.Panel("response time [ms]", 170, [own, others]),
         chart.Panel("CPUs used", 110, use)], case,
        (("the tenant that moves", chart.INK, ""), OTHERS, *NODES))
