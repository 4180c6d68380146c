# SPDX-License-Identifier: GPL-2.0-or-later
"""A made-up run of `rebalance`: what cores and VMs do with and without rebalancing."""
import made_up
from harness.record.cores import Row
from harness.record.schema import Event, Sample
from scenarios.rebalance import plan as plan_rebalance

NAMES = [f"vm{i + 1}" for i in range(8)]
ACTIVE = ["vm1", "vm5", "vm2", "vm6"]
CORES, SHARED = 8, 4


class Run:
    """The story of a run; a test changes what it wants before it is told."""

    def __init__(self):
        self.seeds = 1
        self.ablate = False
        self.hot_s = {"static": 12.0, "rebalanced": 0.5}    # of a burst of 12 s, two cores
        self.tps = {"static": [80.0] * 5, "rebalanced": [100.0] * 5}    # by seed, of each VM
        # Of the CPU time that was due, that which came; tps is as it would be with all.
        self.cpu_came = {"static": 1.0, "rebalanced": 1.0}
        self.p99_us = {"static": [300000] * 5, "rebalanced": [50000] * 5}
        self.shared_cores = {"static": [SHARED] * 5, "rebalanced": [SHARED] + [0] * 4}
        self.moves = [0.4, 1.4]     # seconds after a burst begins at which vm2 is moved
        self.result = {"failed": 0, "lost_updates": 0, "committed": 1000}
        self.cut = None             # action after which everything ends

    def told(self):
        """(run, host) as made_up.spot() returns them."""
        self.t, self.samples, self.events, self.steps, self.rows = 0.0, [], [], [], []
        self.committed = dict.fromkeys(NAMES, 0.0)
        self.cpu_ms, self.cpu_due_ms = dict.fromkeys(NAMES, 0.0), dict.fromkeys(NAMES, 0.0)
        seeds = [{"seed": 1 + i, "bursts": ["vm3", "vm4"]} for i in range(self.seeds)]
        for mode in plan_rebalance.MODES:
            for turn in range(self.seeds):
                self._skew(mode, turn)
            for turn in range(self.seeds):
                self._bursts(mode, turn, seeds[turn]["bursts"])
        run = made_up.run("rebalance", NAMES, self.steps, results=dict.fromkeys(NAMES, self.result),
                          cores=self.rows, rebalance={
                              "window_s": 1, "high": 0.85, "low": 0.25, "skew": 0.68,
                              "seeds": seeds, "burst_s": 12.0, "pause_s": 4.0, "skew_s": 10.0,
                              "hot": 0.95, "active": 0.05, "cpus": 2, "capacity_ps": 180.0,
                              "modes": {"static": False, "rebalanced": not self.ablate}})
        run["ablate"] = self.ablate
        host = made_up.Host()
        host.samples, host.events = self.samples, self.events
        return run, host

    def _step(self, action, mode, turn, vm="", **more):
        self.steps.append({"t_s": self.t, "action": action, "vm": vm, "detail": action,
                           "variant": mode, "turn": turn, **more})

    def _skew(self, mode, turn):
        self._step("skew", mode, turn, active=ACTIVE, shared_cores=self.shared_cores[mode][turn])
        hot = 10.0 if self.hot_s[mode] > 6 else 1.0
        self._for(10.0, mode, turn, hot, {vm: self.tps[mode][turn] for vm in ACTIVE},
                  self.p99_us[mode][turn], spread=hot < 10)
        self._step("skew end", mode, turn)
        self._for(2.0, mode, turn, 0.0, {}, 1000)

    def _bursts(self, mode, turn, names):
        for name in names:
            self._step("burst", mode, turn, name)
            if mode == "rebalanced":
                for after in self.moves:
                    self.events.append(Event(self.t + after, "vm2", "rebalance", 0, 0,
                                             "core 1 was hot", total_ms=None))
            self._for(12.0, mode, turn, self.hot_s[mode], dict.fromkeys(NAMES, 20.0), 9000)
            self._step("pause", mode, turn, name)
            self._for(4.0, mode, turn, 0.0, dict.fromkeys(NAMES, 20.0), 9000)
        self._step("bursts end", mode, turn)

    def _for(self, seconds, mode, turn, hot_s, tps, p99_us, spread=False):
        begin, end = self.t, self.t + seconds
        while self.t < end - 1e-9:
            self.t += 0.5
            for vm in NAMES:
                self.committed[vm] += tps.get(vm, 0.0) / 2 * self.cpu_came[mode]
                self.cpu_due_ms[vm] += 2 * 1000 * made_up.SHARE / 2
                self.cpu_ms[vm] += 2 * 1000 * made_up.SHARE / 2 * self.cpu_came[mode]
                self.samples.append(Sample(
                    round(self.t, 3), vm, 2, 2, 0, 0, tps.get(vm, 0.0), 0.0, 1000, p99_us, 5000,
                    "running", 1, 2, 2, int(self.committed[vm]), 0, 0, 50, "2", 100.0,
                    variant=mode, turn=turn, cpu_ms=self.cpu_ms[vm],
                    cpu_due_ms=self.cpu_due_ms[vm]))
            if self.t == int(self.t):
                is_hot = self.t - begin <= hot_s
                for core in range(CORES):
                    parts = {"vm1": 0.5, "vm5": 0.5} if is_hot and core < 2 else \
                        {"vm1": 0.55 if spread else 0.3, "vm7": 0.02}
                    due = sum(parts.values())
                    came = {vm: part * self.cpu_came[mode] for vm, part in parts.items()}
                    self.rows.append(Row(self.t, 1.0, core, sum(came.values()), due, came))


def rebalance(**changes):
    story = Run()
    for name, value in changes.items():
        assert hasattr(story, name), name
        setattr(story, name, value)
    return story.told()
