# SPDX-License-Identifier: GPL-2.0-or-later
"""Figure 10 of the paper, drawn again: throughput and CPUs while contention rises and falls."""
from harness.draw import chart
from harness.draw.engine_panels import FIRST, SECOND, cpus, span
from harness.judge import engine_series, series


def draw(run, samples, summary):
    rows = series.by_vm(samples).get(run["vms"][0], [])
    told = engine_series.reports(rows)
    panels = [
        chart.Panel("throughput [1000 trans./s]", 300, [
            chart.Line([(r.t_s, r.tps / 1000) for r in told], FIRST, width=2.4)]),
        cpus(run, rows),
        chart.Panel("theta", 80, [
            chart.Line([(r.t_s, r.theta) for r in told], SECOND, step=True)], top=1.1)]
    marks = [chart.Mark(p["t_s"], f"theta {p['theta']:g}", SECOND) for p in summary["phases"][1:]]
    for name, text in (("given_back_at_s", "socket given back"),
                       ("taken_again_at_s", "all CPUs again")):
        if summary.get(name) is not None:
            marks.append(chart.Mark(summary[name], text, FIRST, False))
    return chart.draw(panels, marks, *span(told, samples), legend=[("committed", FIRST, "")])
