# SPDX-License-Identifier: GPL-2.0-or-later
"""The speed of the machine as the VM of measure/yardstick_vm.py shows it."""
from . import delivery, series

NAME = "yardstick"      # of the VM
WINDOW_S = 1.0


class Speed:
    """Work per CPU time of the VM that is the yardstick."""

    def __init__(self, rows):
        reports = {}
        for s in rows:
            if s.committed is not None and s.report_age_ms is not None:
                reports.setdefault(s.committed, s.t_s - s.report_age_ms / 1000)
        self.work = series.Curve(sorted((t_s, n) for n, t_s in reports.items()))
        self.clock = delivery.Clock(rows)

    def over(self, begin, end):
        """Transactions per millisecond of CPU time; None where it is not known."""
        first, last = self.work.at(begin), self.work.at(end)
        given = self.clock.between(begin, end)
        if None in (first, last, given) or given.cpu_s <= 0:
            return None
        return (last - first) / (1000 * given.cpu_s)


def apply(samples, events):
    """(samples, events) of the other VMs, with host_speed by the yardstick."""
    speed = Speed([s for s in samples if s.vm == NAME])
    others = [s for s in samples if s.vm != NAME]
    for s in others:
        s.host_speed = speed.over(s.t_s - WINDOW_S, s.t_s)
    return others, [e for e in events if e.vm != NAME]
