# SPDX-License-Identifier: GPL-2.0-or-later
"""Figures 8, 10, 11 and 12 of the paper, drawn again: throughput, and what it depends on."""
from . import chart, engine_series, series

FIRST, SECOND, ARRIVED = chart.COLOURS[0], chart.COLOURS[1], chart.INK
QUEUE = chart.COLOURS[3]


def draw(run, samples, summary):
    return {"contention": _contention, "peak": _peak, "isolate": _isolate}[run["scenario"]](
        run, samples, summary)


def _span(told, samples):
    if told:
        return max(0.0, told[0].t_s - 1), told[-1].t_s + 0.5
    return 0.0, max((s.t_s for s in samples), default=1.0)


def _cpus(run, rows, height=130):
    cores = run["host"]["cores"] * run["host"]["threads"]
    held = [(s.t_s, s.cpus_held if s.state == "running" else None) for s in rows]
    return chart.Panel("CPUs held", height, [chart.Line(held, FIRST, step=True)], top=cores + 0.7,
                       rules=[(run["startup_cpus"], "startup")])


def _contention(run, samples, summary):
    rows = series.by_vm(samples).get(run["vms"][0], [])
    told = engine_series.reports(rows)
    panels = [
        chart.Panel("throughput [1000 trans./s]", 300, [
            chart.Line([(r.t_s, r.tps / 1000) for r in told], FIRST, width=2.4)]),
        _cpus(run, rows),
        chart.Panel("theta", 80, [
            chart.Line([(r.t_s, r.theta) for r in told], SECOND, step=True)], top=1.1)]
    marks = [chart.Mark(p["t_s"], f"theta {p['theta']:g}", SECOND) for p in summary["phases"][1:]]
    for name, text in (("given_back_at_s", "socket given back"),
                       ("taken_again_at_s", "all CPUs again")):
        if summary.get(name) is not None:
            marks.append(chart.Mark(summary[name], text, FIRST, False))
    return chart.draw(panels, marks, *_span(told, samples), legend=[("committed", FIRST, "")])


def _peak(run, samples, summary):
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
        _cpus(run, rows, 110)]
    marks = [chart.Mark(p["t_s"], "", SECOND, False) for p in summary["peaks"]]
    marks += [chart.Mark(p["end_s"], "", chart.SOFT, False) for p in summary["peaks"]]
    return chart.draw(panels, marks, *_span([r for r in told if r.offered_ps], samples),
                      legend=[("committed", FIRST, ""), ("arrived", ARRIVED, "2 3")])


def _isolate(run, samples, summary):
    vms = series.by_vm(samples)
    look = dict(zip(run["vms"], ((FIRST, ""), (SECOND, "7 3"))))
    throughput = [chart.Line([(s.t_s, s.tps / 1000 if s.tps and s.workers else None)
                              for s in vms.get(vm, [])], *look[vm], width=2.4) for vm in look]
    panels = [chart.Panel("throughput [1000 trans./s]", 270, throughput)]
    threads = run["host"]["threads"] * run["host"]["cores"] // run["host"]["sockets"]
    for node in range(run["host"]["sockets"]):
        panels.append(chart.Panel(f"CPUs, socket {node}", 90, [
            chart.Line([(s.t_s, _on(run, s, node)) for s in vms.get(vm, [])], *look[vm], width=2.4,
                       step=True) for vm in look], top=threads + 0.7))
    words = {"arrive": "second arrives", "apart": "a socket each", "fair": "policy fair",
             "left": "alone again"}
    marks = [chart.Mark(summary["spans"][name][0], text, chart.SOFT)
             for name, text in words.items() if name in summary["spans"]]
    end = max((s.t_s for s in samples), default=1.0)
    return chart.draw(panels, marks, 0.0, end, legend=[(vm, *look[vm]) for vm in look])


def _on(run, sample, socket):
    if sample.state != "running" or not sample.nodes_held:
        return None
    return engine_series.on_sockets(run, sample)[socket]
