# SPDX-License-Identifier: GPL-2.0-or-later
"""Where each database was, what its clients got, and the marks of what happened."""
from harness.draw import chart

from .plan import HOSTS

MARKS = (("grows", "load grows"), ("order", "one is to leave"), ("moved", "it has moved"),
         ("loss", "a host is lost"), ("again", "its VMs run again"), ("end", "it is back"))


def draw(run, _samples, _summary):
    told = run["cluster"]
    looks = {vm: (chart.COLOURS[i % len(chart.COLOURS)], chart.DASHES[i % len(chart.DASHES)])
             for i, vm in enumerate(told["loads"])}
    where = [chart.Line([(look["t_s"], _row(look, vm, i)) for look in told["looks"]], colour, dash,
                        step=True) for i, (vm, (colour, dash)) in enumerate(looks.items())]
    rates = [chart.Line([(row["t_s"], row["done"] / row["seconds"]) for row in rows
                         if row["seconds"] > 0.5], *looks[vm])
             for vm, rows in told["loads"].items()]
    times = [chart.Line([(row["t_s"], row["p99_us"] / 1000 if row["done"] else None)
                         for row in rows if row["seconds"] > 0.5], *looks[vm])
             for vm, rows in told["loads"].items()]
    marks = [chart.Mark(told["moments"][name], text, strong=name in ("order", "loss"))
             for name, text in MARKS if name in told["moments"]]
    end = told["looks"][-1]["t_s"] if told["looks"] else 1.0
    return chart.draw(
        [chart.Panel("host", 130, where, top=len(HOSTS) + 0.5,
                     rules=[(i + 1, host) for i, host in enumerate(HOSTS)]),
         chart.Panel("answered [1/s]", 150, rates), chart.Panel("p99 [ms]", 130, times)],
        marks, told["moments"].get("steady", 0.0), end,
        legend=[(vm, *look) for vm, look in looks.items()])


def _row(look, vm, i):
    """The host's number; lines of VMs on one host are beside each other. None: nowhere."""
    host = look["where"].get(vm)
    return HOSTS.index(host) + 1 + 0.05 * i if host else None
