# SPDX-License-Identifier: GPL-2.0-or-later
"""Figures 8 and 9 of the paper on flexible resource allocation, drawn again: the rounds laid over
one another, counted from the moment in which the warm database may grow; and what each guest said
its memory is worth."""
from . import chart, histogram, plan_broker, smooth, verdict_broker

MIB = 1 << 20
LOOK = {"vom": (chart.COLOURS[0], ""), "equal": (chart.COLOURS[2], "2 3"),
        "proportional": (chart.COLOURS[1], "7 3"), "balloon": (chart.COLOURS[3], "9 3 2 3")}
COLOUR = {plan_broker.COLD: chart.COLOURS[5], plan_broker.WARM: chart.COLOURS[4]}


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
        at = verdict_broker.moments(run, turn["variant"])
        if at.ramp is None:
            continue
        colour, dash = LOOK.get(turn["variant"], (chart.SOFT, ""))
        rows = {vm: verdict_broker.between([s for s in samples if s.variant == turn["variant"]],
                                           vm, at.begin, at.end or float("inf"))
                for vm in (plan_broker.WARM, plan_broker.COLD)}
        for lines, vm, since in ((tps, plan_broker.WARM, at.ramp + begin),
                                 (again, plan_broker.COLD, at.restart or float("inf"))):
            seen = [s for s in rows[vm] if s.t_s >= since]
            lines.append(chart.Line([(t - at.ramp, v / 1000) for t, v in smooth.moving_average(
                seen, b["window_s"])], colour, dash, width=2.4))
        for lines, vm in ((warm, plan_broker.WARM), (cold, plan_broker.COLD)):
            lines.append(chart.Line([(s.t_s - at.ramp, s.mem_held_bytes / MIB)
                                     for s in rows[vm]], colour, dash, step=True))
    panels = [
        chart.Panel(f"{plan_broker.WARM}: throughput [1000 trans./s]", 270, tps),
        chart.Panel(f"{plan_broker.COLD}: throughput [1000 trans./s]", 190, again),
        chart.Panel(f"{plan_broker.WARM}: memory [MiB]", 190, warm, top=b["pool_mib"]),
        chart.Panel(f"{plan_broker.COLD}: memory [MiB]", 190, cold, top=b["pool_mib"],
                    rules=[(b["min_mib"], "guaranteed")])]
    marks = [chart.Mark(0, f"{plan_broker.WARM} may grow", chart.INK),
             chart.Mark(b["ramp_s"], "they change places", chart.INK),
             chart.Mark(b["ramp_s"] + b["restart_s"], "both work", chart.INK)]
    legend = [(label(turn), *LOOK.get(turn["variant"], (chart.SOFT, "")))
              for turn in b["rounds"]]
    return chart.draw(panels, marks, begin, end, legend=legend,
                      axis=f"time since {plan_broker.WARM} may grow [s]")


def picked(b):
    """Of the subject's round, the first histogram of each VM and the last: [histogram]."""
    found = []
    for vm in (plan_broker.COLD, plan_broker.WARM):
        told = [h for h in b["histograms"] if h["variant"] == plan_broker.SUBJECT and
                h["vm"] == vm]
        found += told[:1] + told[1:][-1:]
    return found


def histograms(run):
    told = picked(run["broker"])
    if not told:
        return ""
    ramp = verdict_broker.moments(run, plan_broker.SUBJECT).ramp or 0.0
    parts = [(f"{h['vm']}, {h['t_s'] - ramp:.0f} s after {plan_broker.WARM} may grow: "
              f"{sum(x[1] for x in h['buckets']) / 1024:.0f} MiB in {len(h['buckets'])} buckets, "
              f"{verdict_broker.histogram_bytes(h):,} bytes", h["buckets"],
              COLOUR[h["vm"]], h.get("cutoff")) for h in told]
    return '<h2>What memory is worth, as the guests say</h2>' + histogram.draw(parts)
