# SPDX-License-Identifier: GPL-2.0-or-later
"""Figure 5 of the paper, drawn again: throughput by the number of remote operations."""
from harness.draw import chart

from .verdict import MEMORY, OPERATIONS, TWO_PHASE

LOOKS = ((TWO_PHASE, "two nodes, two-phase commit", chart.COLOURS[1], ""),
         (MEMORY, "one engine, remote memory", chart.COLOURS[0], "7 3"))


def draw(_run, _samples, summary):
    return chart.draw_rates(summary["curves"], LOOKS, "remote operations of ten", 0, OPERATIONS)
