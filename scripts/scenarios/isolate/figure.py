# SPDX-License-Identifier: GPL-2.0-or-later
"""Figure 8 of the paper, drawn again: throughput of two tenants, and whose each socket is."""
from harness.draw import chart
from harness.draw.engine_panels import FIRST, SECOND
from harness.judge import engine_series, series


def draw(run, samples, summary):
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
