# SPDX-License-Identifier: GPL-2.0-or-later
"""Figure 15 of the paper, drawn again: response times of Delivery around a failover."""
from harness.draw import chart

from .plan import COLD, WARM

LOOKS = ((WARM, "with the cache", chart.COLOURS[0], ""),
         (COLD, "without it", chart.COLOURS[1], "7 3"))
LEGEND = tuple(look[1:] for look in LOOKS)


def draw(run, _samples, _summary):
    cases = {case["name"]: case for case in run["failover"]["cases"]}
    times, failed = [], []
    begin, end = 0.0, 1.0
    for name, _, colour, dash in LOOKS:
        case = cases[name]
        rows = [(row["t_s"] - case["order_s"], row) for row in case["load"]
                if row["seconds"] > 0.5 and case["steady_s"] < row["t_s"] <= case["end_s"]]
        times.append(chart.Line([(t, row["mean_us"] / 1000 if row["done"] else None)
                                 for t, row in rows], colour, dash))
        failed.append(chart.Line([(t, row["failures"]) for t, row in rows], colour, dash))
        begin = min(begin, case["steady_s"] - case["order_s"])
        end = max(end, case["end_s"] - case["order_s"])
    marks = [chart.Mark(0.0, "failover")]
    return "<h2>Figure 15: a failover with and without the cache</h2>" + chart.draw(
        [chart.Panel("Delivery [ms]", 170, times),
         chart.Panel("failed per second", 90, failed)], marks, begin, end, legend=LEGEND)
