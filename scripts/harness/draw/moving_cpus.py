# SPDX-License-Identifier: GPL-2.0-or-later
"""Throughput above, CPUs held below: the figure of scenarios in which CPUs move between VMs."""
from harness.judge import series

from . import chart


def looks(run):
    """{VM: (colour, dashes)}"""
    return {vm: (chart.COLOURS[i % len(chart.COLOURS)], chart.DASHES[i % len(chart.DASHES)])
            for i, vm in enumerate(run["vms"])}


def draw(run, samples, marks, reference=()):
    """reference: [(words, chart.Line)], of what throughput is compared with."""
    vms, look = series.by_vm(samples), looks(run)
    throughput, held = [line for _, line in reference], []
    for vm, rows in vms.items():
        colour, dash = look.get(vm, (chart.SOFT, ""))
        throughput.append(chart.Line(_throughput(rows), colour, dash, width=2.4))
        held.append(chart.Line(_held(rows, vms, vm), colour, dash, width=2.4, step=True))
    legend = [(vm, *look[vm]) for vm in run["vms"]]
    legend += [(words, line.colour, line.dash) for words, line in reference]
    cores = run["host"]["cores"]
    panels = [chart.Panel("throughput [1000 transactions/s]", 300, throughput),
              chart.Panel("CPUs held", 170, held, top=cores + 0.7,
                          rules=[(cores, "whole host")])]
    return chart.draw(panels, marks, 0.0, max((s.t_s for s in samples), default=1.0),
                      legend=legend)


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
