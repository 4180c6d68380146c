# SPDX-License-Identifier: GPL-2.0-or-later
"""What happens in `contention`, `peak` and `isolate`, and what engines say of themselves meanwhile.

In the first two the VM is left alone: load follows a schedule that the engine was given, and which
CPUs it holds is its own choice. In the third the policy chooses; the scenario changes it once.
"""
import re

from . import domain
from .memory.play import Console

REPORT = re.compile(r"oltp: t=(\S+) workers=\d+ tps=(\S+) .*theta=(\S+)"
                    r"(?: offered=(\S+) queue=(\d+))?")
CALIBRATED = re.compile(r"oltp: t=(\S+) load calibrated=(\S+)")
SLACK_S = 30        # that an engine may run beyond its schedule: it counts its own seconds
SETTLE_S = 8        # longest wait for CPUs to be divided


def alone(stage, _dwell_s):
    """One VM, from its start until its engine has done what it was told."""
    name = next(iter(stage.vms))
    stage.start(name)
    stage.wait_join(name)
    stage.step("run", name, "load changes by schedule; the engine chooses its CPUs")
    stage.wait_leave(name, stage.more["load"]["seconds"] + SLACK_S * stage.scale)
    stage.watch(0.5)


def isolate(stage, dwell_s):
    """A second tenant comes; they are kept apart, then not; the second tenant goes."""
    first, second = stage.vms
    policy = stage.more["policy"]
    stage.start(first)
    stage.wait_join(first)
    stage.watch(dwell_s)
    stage.step("arrive", second, f"{second} arrives")
    stage.start(second)
    stage.wait_join(second)
    stage.watch(SETTLE_S * stage.scale)
    stage.step("apart", second, f"both run under the policy {policy}")
    stage.watch(dwell_s)
    stage.set_policy("fair")
    stage.watch(SETTLE_S * stage.scale)
    stage.step("fair", second, "both run under the policy fair")
    stage.watch(dwell_s)
    stage.set_policy(policy)
    stage.stop(second)
    stage.wait_leave(second)
    stage.step("left", second, f"{first} is alone again")
    stage.watch(SETTLE_S * stage.scale)
    stage.stop(first)
    stage.wait_leave(first)


class EngineProbe:
    """Adds to each sample the oldest report of its engine that no sample has yet.

    Engine and sampler have about the same interval, so one a sample loses none.
    """

    def __init__(self, boot, vms):
        self.consoles = {vm.name: Console(domain.console_path(boot, vm)) for vm in vms}
        self.waiting = {vm.name: [] for vm in vms}
        self.calibrated = {}

    def __call__(self, sample):
        waiting = self.waiting[sample.vm]
        for line in self.consoles[sample.vm].lines():
            found = CALIBRATED.match(line)
            if found:
                self.calibrated[sample.vm] = {"t_s": float(found.group(1)),
                                              "tps": float(found.group(2))}
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
