# SPDX-License-Identifier: GPL-2.0-or-later
"""The papers' figures, drawn again from samples: throughput above, CPUs held below."""
from . import chart, figure_engine, series, words_engine, words_slices
from .broker import figure as figure_broker
from .memory import figure as figure_memory
from .rebalance import figure as figure_rebalance
from .scale import verdict as verdict_scale
from .spot import verdict as verdict_spot


def draw(run, samples, summary):
    if run["scenario"] == "memory":
        return figure_memory.draw(run, samples, summary)
    if run["scenario"] == "rebalance":
        return figure_rebalance.draw(run, samples, summary)
    if run["scenario"] == "broker":
        return figure_broker.draw(run, samples, summary)
    if run["scenario"] in words_engine.SCENARIOS:
        return figure_engine.draw(run, samples, summary)
    if run["scenario"] in words_slices.SCENARIOS:
        return words_slices.draw(summary)
    vms = series.by_vm(samples)
    begin, end = 0.0, max((s.t_s for s in samples), default=1.0)
    look = {vm: (chart.COLOURS[i % len(chart.COLOURS)], chart.DASHES[i % len(chart.DASHES)])
            for i, vm in enumerate(run["vms"])}
    throughput, held = [], []
    for vm, rows in vms.items():
        colour, dash = look.get(vm, (chart.SOFT, ""))
        throughput.append(chart.Line(_throughput(rows), colour, dash, width=2.4))
        held.append(chart.Line(_held(rows, vms, vm), colour, dash, width=2.4, step=True))
    legend = [(vm, *look[vm]) for vm in run["vms"]]
    rate = summary.get("tps_per_cpu")
    if run["scenario"] == "scale" and rate:
        line = chart.Line(_proportional(vms[run["vms"][0]], rate), chart.INK, "2 3", 1.4,
                          step=True)
        throughput.insert(0, line)
        legend.append((f"proportional, {rate / 1000:.2f} k/s per CPU", chart.INK, "2 3"))
    cores = run["host"]["cores"]
    panels = [chart.Panel("throughput [1000 transactions/s]", 300, throughput),
              chart.Panel("CPUs held", 170, held, top=cores + 0.7,
                          rules=[(cores, "whole host")])]
    return chart.draw(panels, _marks(run, samples, look), begin, end, legend=legend)


def _throughput(rows):
    """From the first transaction to the last, and down to zero."""
    points = [(s.t_s, s.tps / 1000 if s.tps is not None and s.state == "running" else None)
              for s in rows]
    busy = [i for i, (_, y) in enumerate(points) if y]
    return points[busy[0]:busy[-1] + 2] if busy else []


def _held(rows, vms, vm):
    """Step line. VMs that hold the same are drawn a hair apart, or one would hide the other."""
    lift = 0.09 * (list(vms).index(vm) - (len(vms) - 1) / 2)
    return [(s.t_s, s.cpus_held + lift if s.state == "running" and s.cpus_held else None)
            for s in rows]


def _proportional(rows, rate):
    return [(s.t_s, rate * s.cpus_held / 1000 if s.state == "running" and s.workers else None)
            for s in rows]


def _marks(run, samples, look):
    if run["scenario"] == "scale":
        top = [p for p in verdict_scale.plateaus(samples, run["dwell_s"] / 2)
               if p.cpus == run["host"]["cores"]]
        return [chart.Mark(p.begin, "whole host held", chart.SOFT) for p in top[:1]]
    words = {"join": "joins", "leave": "left", "start": "boots", "stop": "stops"}
    marks = []
    for p in verdict_spot.phases(samples, verdict_spot.lives(run)):
        strong = p.cause in ("join", "leave")
        text = f"{p.vm} {words[p.cause]}" if strong else ""
        marks.append(chart.Mark(p.begin, text, look.get(p.vm, (chart.SOFT,))[0], strong))
    return marks
