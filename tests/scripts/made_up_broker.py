# SPDX-License-Identifier: GPL-2.0-or-later
"""A made-up run of `broker`: what a good agent and good guests would have recorded."""
import made_up
from harness.record.schema import Event, Sample
from scenarios.broker import plan as plan_broker

MIB = 1 << 20
STEP_S = 0.25
READS = 2.5                         # from disk, for each transaction
COLD, WARM = plan_broker.COLD, plan_broker.WARM


class Run:
    """The story of a run; a test changes what it wants before it is told."""

    def __init__(self):
        self.ramp_s, self.restart_s, self.both_s, self.idle_s = 40.0, 12.0, 8.0, 8.0
        self.minute_s, self.cool_down_s = 8.0, 4.0
        self.policies = list(plan_broker.POLICIES)
        self.ablate = False
        # Throughput of the warm VM for each MiB that it holds, and how much it gains a second.
        self.growth = {"vom": 2.5, "equal": 1.2, "proportional": 1.6, "balloon": 1.9}
        self.restart_tps = {"vom": 990.0, "equal": 1100.0, "proportional": 1000.0,
                            "balloon": 900.0}
        self.cold_held = 130
        self.gap_s = 4.0            # between brokerings
        self.buckets = 300
        self.tells = (COLD, WARM)   # the VMs that send histograms
        self.revoked_mib = 0
        self.reason = "the pool is above its threshold"
        self.result = {"failed": 0, "lost_updates": 0, "committed": 1000}

    def told(self):
        """(run, host) as made_up.spot() returns them."""
        self.t, self.samples, self.events, self.steps = 0.0, [], [], []
        self.histograms = []
        order = plan_broker.rounds(self.ablate, self.policies)
        for turn in order:
            self._round(turn["variant"])
        run = made_up.run("broker", [COLD, WARM], self.steps, policy=order[0]["policy"],
                          broker={"load": "ycsb", "rounds": order, "pool_mib": 160,
                                  "min_mib": 18, "minute_s": self.minute_s,
                                  "cool_down_s": self.cool_down_s,
                                  "window_s": 2 * self.cool_down_s, "ramp_s": self.ramp_s,
                                  "idle_s": self.idle_s, "restart_s": self.restart_s,
                                  "both_s": self.both_s,
                                  "histograms": self.histograms},
                          results={vm: self.result for vm in (COLD, WARM)})
        run["ablate"] = self.ablate
        host = made_up.Host()
        host.samples, host.events = self.samples, self.events
        return run, host

    def _step(self, action, variant):
        self.steps.append({"t_s": self.t, "action": action, "vm": "", "detail": action,
                           "variant": variant})

    def _event(self, event, vm, mib=0):
        self.events.append(Event(self.t, vm, event, 0, 0, self.reason, bytes=mib * MIB))

    def _round(self, variant):
        self.committed = {COLD: 0.0, WARM: 0.0}
        self._step("begin", variant)
        self._for(5.0, variant, lambda s: (1000, self.cold_held), lambda s: (300, 18))
        self._step("idle", variant)
        self._for(self.idle_s, variant, lambda s: (0, self.cold_held), lambda s: (300, 18))
        self._step("ramp", variant)
        if variant == "vom":
            self.histograms += [
                {"t_s": self.t + 1, "variant": variant, "vm": vm, "seq": 1,
                 "buckets": [[10 ** (i % 6), 256, 0] for i in range(self.buckets)]}
                for vm in self.tells]
        n = int(self.ramp_s / self.gap_s)
        for i in range(n):
            for vm in (COLD, WARM):
                self._event("broker", vm, 6)
            if i == 0 and self.revoked_mib:
                self._event("mem_revoke", COLD, self.revoked_mib)
            g, begun = self.growth[variant], i * self.gap_s
            self._for(self.ramp_s / n, variant, lambda s: (0, self.cold_held - g * (begun + s)),
                      lambda s: (300 + 10 * g * (begun + s), 18 + g * (begun + s)))
        self._step("restart", variant)
        self._for(self.restart_s, variant, lambda s: (self.restart_tps[variant], 40),
                  lambda s: (0, 100))
        self._step("both", variant)
        self._for(self.both_s, variant, lambda s: (700, 80), lambda s: (500, 80))
        self._step("end", variant)
        self._for(2.0, variant, lambda s: (0, 0), lambda s: (0, 0), state="stopped")

    def _for(self, seconds, variant, cold, warm, state="running"):
        end, begin = self.t + seconds, self.t
        while self.t < end - 1e-9:
            for vm, what in ((COLD, cold), (WARM, warm)):
                tps, mib = what(self.t - begin)
                self.committed[vm] += tps * STEP_S
                self.samples.append(Sample(
                    round(self.t, 3), vm, 1, 1, int(mib * MIB), int(mib * MIB), tps, 0.0, 100, 900,
                    500, state, 1, int(state == "running"), 1, int(self.committed[vm]), 0, 0, 50,
                    "1", 100.0, f"{int(mib * MIB)}",
                    cold_reads=int(READS * self.committed[vm]), variant=variant))
            self.t += STEP_S


def broker(**changes):
    story = Run()
    for name, value in changes.items():
        assert hasattr(story, name), name
        setattr(story, name, value)
    return story.told()
