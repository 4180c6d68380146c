# SPDX-License-Identifier: GPL-2.0-or-later
"""What figures of one engine share that reports theta, arrivals and queue."""
from . import chart

FIRST, SECOND = chart.COLOURS[0], chart.COLOURS[1]


def span(told, samples):
    if told:
        return max(0.0, told[0].t_s - 1), told[-1].t_s + 0.5
    return 0.0, max((s.t_s for s in samples), default=1.0)


def cpus(run, rows, height=130):
    cores = run["host"]["cores"] * run["host"]["threads"]
    held = [(s.t_s, s.cpus_held if s.state == "running" else None) for s in rows]
    return chart.Panel("CPUs held", height, [chart.Line(held, FIRST, step=True)], top=cores + 0.7,
                       rules=[(run["startup_cpus"], "startup")])
