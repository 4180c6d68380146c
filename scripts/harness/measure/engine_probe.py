# SPDX-License-Identifier: GPL-2.0-or-later
"""What engines say of themselves on their consoles while they run, for the samples."""
import re

from harness.lab import domain
from harness.lab.console import Console

REPORT = re.compile(r"oltp: t=(\S+) workers=\d+ tps=(\S+) .*theta=(\S+)"
                    r"(?: offered=(\S+) queue=(\d+))?")


class EngineProbe:
    """Adds to each sample the oldest report of its engine that no sample has yet.

    Engine and sampler have about the same interval, so one a sample loses none.
    """

    def __init__(self, _lab, boot, vms):
        self.consoles = {vm.name: Console(domain.console_path(boot, vm)) for vm in vms}
        self.waiting = {vm.name: [] for vm in vms}

    def __call__(self, sample):
        waiting = self.waiting[sample.vm]
        for line in self.consoles[sample.vm].lines():
            report = report_of(line)
            if report:
                waiting.append(report)
        if waiting:
            for name, value in waiting.pop(0).items():
                setattr(sample, name, value)


def report_of(line):
    """The columns of a sample that a line of an engine has, None for other lines."""
    found = REPORT.match(line)
    if not found:
        return None
    t_s, tps, theta, offered, queue = found.groups()
    return {"engine_t_s": float(t_s), "engine_tps": float(tps), "theta": float(theta),
            "offered_ps": None if offered is None else float(offered),
            "queue": None if queue is None else int(queue)}
