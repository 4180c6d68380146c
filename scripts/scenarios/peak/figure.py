# SPDX-License-Identifier: GPL-2.0-or-later
"""Figures 11 and 12 of the paper, drawn again: what is committed of what arrives."""
from harness.draw import chart
from harness.draw.engine_panels import FIRST, SECOND, cpus, span
from harness.judge import engine_series, series

ARRIVED, QUEUE = chart.INK, chart.COLOURS[3]


def draw(run, samples, summary):
    rows = series.by_vm(samples).get(run["vms"][0], [])
    told = [r for r in engine_series.reports(rows) if r.offered_ps is not None]
    panels = [
        chart.Panel("throughput [1000 trans./s]", 270, [
            chart.Line([(r.t_s, r.offered_ps / 1000) for r in told], ARRIVED, "2 3", 1.4,
                       step=True),
            chart.Line([(r.t_s, r.tps / 1000) for r in told], FIRST, width=2.4)]),
        chart.Panel("committed of arrived [%]", 120, [
            chart.Line([(r.t_s, min(150.0, 100 * r.tps / r.offered_ps) if r.offered_ps else None)
                        for r in told], FIRST)], top=155.0, rules=[(80, "80 %"), (50, "50 %")]),
        chart.Panel("waiting [transactions]", 90, [
            chart.Line([(r.t_s, r.queue) for r in told], QUEUE)]),
        cpus(run, rows, 110)]
    marks = [chart.Mark(p["t_s"], "", SECOND, False) for p in summary["peaks"]]
    marks += [chart.Mark(p["end_s"], "", chart.SOFT, False) for p in summary["peaks"]]
    return chart.draw(panels, marks, *span([r for r in told if r.offered_ps], samples),
                      legend=[("committed", FIRST, ""), ("arrived", ARRIVED, "2 3")])
