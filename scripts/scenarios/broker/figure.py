# SPDX-License-Identifier: GPL-2.0-or-later
"""Figures 8 and 9 of the paper on flexible resource allocation, drawn again: the rounds laid over
one another, counted from the moment in which the warm database may grow; and what each guest said
its memory is worth."""
from harness.draw import chart, histogram
from harness.judge import smooth

from . import plan, verdict

MIB = 1 << 20
LOOK = {"vom": (chart.COLOURS[0], ""), "equal": (chart.COLOURS[2], "2 3"),
        "proportional": (chart.COLOURS[1], "7 3"), "balloon": (chart.COLOURS[3], "9 3 2 3")}
COLOUR = {plan.COLD: chart.COLOURS[5], plan.WARM: chart.COLOURS[4]}


def draw(run, samples, _summary):
    return curves(run, samples) + histograms(run)


def label(turn):
    """How a round is called in the legend."""
    if turn["variant"] == turn["policy"]:
        return turn["policy"]
    return f"{turn['policy']} in place of {turn['variant']}"


def curves(run, samples):
    b = run["broker"]
    tps, again, warm, cold = [], [], [], []
    begin, end = -b["idle_s"], b["ramp_s"] + b["restart_s"] + b["both_s"]
    for turn in b["rounds"]:
        at = verdict.moments(run, turn["variant"])
        if at.ramp is None:
            continue
        colour, dash = LOOK.get(turn["variant"], (chart.SOFT, ""))
        rows = {vm: verdict.between([s for s in samples if s.variant == turn["variant"]],
                                           vm, at.begin, at.end or float("inf"))
                for vm in (plan.WARM, plan.COLD)}
        for lines, vm, since in ((tps, plan.WARM, at.ramp + begin),
                                 (again, plan.COLD, at.restart or float("inf"))):
            seen = [s for s in rows[vm] if s.t_s >= since]
            lines.append(chart.Line([(t - at.ramp, v / 1000) for t, v in smooth.moving_average(
                seen, b["window_s"])], colour, dash, width=2.4))
        for lines, vm in ((warm, plan.WARM), (cold, plan.COLD)):
            lines.append(chart.Line([(s.t_s - at.ramp, s.mem_held_bytes / MIB)
                                     for s in rows[vm]], colour, dash, step=True))
    panels = [
        chart.Panel(f"{plan.WARM}: throughput [1000 trans./s]", 270, tps),
        chart.Panel(f"{plan.COLD}: throughput [1000 trans./s]", 190, again),
        chart.Panel(f"{plan.WARM}: memory [MiB]", 190, warm, top=b["pool_mib"]),
        chart.Panel(f"{plan.COLD}: memory [MiB]", 190, cold, top=b["pool_mib"],
                    rules=[(b["min_mib"], "guaranteed")])]
    marks = [chart.Mark(0, f"{plan.WARM} may grow", chart.INK),
             chart.Mark(b["ramp_s"], "they change places", chart.INK),
             chart.Mark(b["ramp_s"] + b["restart_s"], "both work", chart.INK)]
    legend = [(label(turn), *LOOK.get(turn["variant"], (chart.SOFT, "")))
              for turn in b["rounds"]]
    return chart.draw(panels, marks, begin, end, legend=legend,
                      axis=f"time since {plan.WARM} may grow [s]")


def picked(b):
    """Of the subject's round, the first histogram of each VM and the last: [histogram]."""
    found = []
    for vm in (plan.COLD, plan.WARM):
        told = [h for h in b["histograms"] if h["variant"] == plan.SUBJECT and
                h["vm"] == vm]
        found += told[:1] + told[1:][-1:]
    return found


def histograms(run):
    told = picked(run["broker"])
    if not told:
        return ""
    ramp = verdict.moments(run, plan.SUBJECT).ramp or 0.0
    parts = [(f"{h['vm']}, {h['t_s'] - ramp:.0f} s after {plan.WARM} may grow: "
              f"{sum(x[1] for x in h['buckets']) / 1024:.0f} MiB in {len(h['buckets'])} buckets, "
              f"{verdict.histogram_bytes(h):,} bytes", h["buckets"],
              COLOUR[h["vm"]], h.get("cutoff")) for h in told]
    return '<h2>What memory is worth, as the guests say</h2>' + histogram.draw(parts)
