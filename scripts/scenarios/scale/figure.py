# SPDX-License-Identifier: GPL-2.0-or-later
"""Figure 3 of the paper, drawn again: throughput of a VM that grows, and what would be in
proportion to its CPUs."""
from harness.draw import chart, moving_cpus
from harness.judge import series

from . import verdict


def draw(run, samples, summary):
    top = [p for p in verdict.plateaus(samples, run["dwell_s"] / 2)
           if p.cpus == run["host"]["cores"]]
    marks = [chart.Mark(p.begin, "whole host held", chart.SOFT) for p in top[:1]]
    rate, reference = summary.get("tps_per_cpu"), []
    if rate:
        line = chart.Line(_proportional(series.by_vm(samples)[run["vms"][0]], rate), chart.INK,
                          "2 3", 1.4, step=True)
        reference = [(f"proportional, {rate / 1000:.2f} k/s per CPU", line)]
    return moving_cpus.draw(run, samples, marks, reference)


def _proportional(rows, rate):
    return [(s.t_s, rate * s.cpus_held / 1000 if s.state == "running" and s.workers else None)
            for s in rows]
