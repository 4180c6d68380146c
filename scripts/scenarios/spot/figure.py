# SPDX-License-Identifier: GPL-2.0-or-later
"""Figure 6 of the paper, drawn again: throughput and CPUs of VMs that join and leave."""
from harness.draw import chart, moving_cpus

from . import verdict

WORDS = {"join": "joins", "leave": "left"}


def draw(run, samples, _summary):
    look, marks = moving_cpus.looks(run), []
    for p in verdict.phases(samples, verdict.lives(run)):
        text = f"{p.vm} {WORDS[p.cause]}" if p.cause in WORDS else ""
        marks.append(chart.Mark(p.begin, text, look.get(p.vm, (chart.SOFT,))[0], bool(text)))
    return moving_cpus.draw(run, samples, marks)
