# SPDX-License-Identifier: GPL-2.0-or-later
"""Figure 4 of the paper, drawn again: throughput by the number of tenants."""
from harness.draw import chart

from .verdict import ENGINE, TENANTS, VMS

LOOKS = ((ENGINE, "one engine, a partition each", chart.COLOURS[0], "7 3"),
         (VMS, "a VM each", chart.COLOURS[1], ""))


def draw(_run, _samples, summary):
    curves = {name: [(p["tenants"], p[name]) for p in summary["points"] if name in p]
              for name, *_ in LOOKS}
    return chart.draw_rates(curves, LOOKS, "tenants", TENANTS[0], TENANTS[-1])
