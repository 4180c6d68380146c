# SPDX-License-Identifier: GPL-2.0-or-later
"""A made-up run of `memory`: what a good host and a good engine would have recorded."""
import made_up
from harness.record.schema import Event, Sample

MIB = 1 << 20
POOL, NODE, CPUS = 128, 1, 2
KEPT = 120              # MiB held on each node
STEP_S = 0.25


class Run:
    """The story of a run; a test changes what it wants before it is told."""

    def __init__(self):
        self.dwell_s = 10.0
        self.deadline_ms = 20000
        self.give_up_s = 4.0        # how long giving the memory back takes; None: never given
        self.return_s = 3.0         # how long taking it again takes; None: never taken
        self.rss_share = 1.0        # of what is held, what the host's memory shows
        self.rss_floor_mib = 0      # what the host's memory never falls below
        self.cpus_kept = 0          # CPUs of the node that are not given back
        self.revoked_mib = 0
        self.tps = {"before": 4000.0, "without": 1500.0, "after": 3900.0}
        self.stall_s = 0.0          # before the memory is given back
        self.reason = "share of vm1 on node 1"
        self.result = {"failed": 0, "lost_updates": 0, "committed": 1000, "lost_records": 0,
                       "mem_add_ms": {"n": 3, "median": 0.3, "p95": 0.5},
                       "mem_release_ms": {"n": 9, "median": 2.0, "p95": 4.0}}
        self.verifications = [
            {"phase": p, "ms": 800.0, "complete": True, "rc": 0, "records": 190000, "damaged": 0,
             "updates": updates, "checksum": checksum, "cold_records": cold}
            for p, updates, checksum, cold in (("before", 9000, "00c0ffee", 0),
                                               ("without", 9500, "0000cafe", 70000),
                                               ("after", 9500, "0000cafe", 0))]

    def told(self):
        """(run, host) as made_up.spot() returns them."""
        self.t, self.samples, self.events, self.steps = 0.0, [], [], []
        self.committed = self.reads = 0
        self._step("start", 0)
        self._for(self.dwell_s, KEPT, CPUS, "before")
        self._step("verify before", 0.5)
        self._step("take", 0)
        self._event("mem_demand", 0)
        self._event("release", 0, cpus=CPUS - self.cpus_kept)
        if self.stall_s:
            self._for(self.stall_s, KEPT, self.cpus_kept, "without", tps=0.0)
        met = self.give_up_s is not None
        wait_s = self.give_up_s if met else self.deadline_ms / 1000 + 5
        self._for(wait_s, KEPT, self.cpus_kept, "without")
        if self.revoked_mib:
            self._event("mem_revoke", self.revoked_mib * MIB)
        if met:
            self._event("mem_release", KEPT * MIB)
        low = 0 if met else KEPT
        self._for(self.dwell_s, low, self.cpus_kept, "without", cold=True)
        self._step("verify without", 0.5)
        self._step("give", 0)
        self._event("mem_offer", POOL * MIB)
        self._event("grant", 0, cpus=CPUS - self.cpus_kept)
        back = self.return_s is not None
        self._for(self.return_s if back else 10.0, low, CPUS, "without")
        self._for(1.5 * self.dwell_s, KEPT if back else low, CPUS, "after")
        self._step("verify after", 0.5)
        self._step("stop", 0)
        run = made_up.run("memory", ["vm1"], self.steps, dwell_s=self.dwell_s, memory={
            "node": NODE, "pool_mib": POOL, "deadline_ms": self.deadline_ms, "records": 190000,
            "disk": "a <made-up> disk", "verifications": self.verifications})
        run["host"] = made_up.host(4)
        run["results"] = {"vm1": self.result}
        host = made_up.Host()
        host.samples, host.events = self.samples, self.events
        return run, host

    def _step(self, action, seconds):
        self.steps.append({"t_s": self.t, "action": action, "vm": "vm1", "detail": action})
        if seconds and self.samples:
            last = self.samples[-1]
            self._for(seconds, int(last.mem_nodes_held.split("/")[1]) // MIB, last.cpus_held - CPUS,
                      "without")

    def _event(self, kind, count, cpus=0):
        self.events.append(Event(self.t, "vm1", kind, cpus, NODE, self.reason,
                                 30.0 if cpus else None, {}, count))

    def _for(self, seconds, mib, cpus, phase, tps=None, cold=False):
        tps = self.tps[phase] if tps is None else tps
        for _ in range(round(seconds / STEP_S)):
            self.committed += tps * STEP_S
            self.reads += 100 if cold else 0
            held = (KEPT + mib) * MIB
            rss = max(held * self.rss_share, self.rss_floor_mib * MIB)
            self.samples.append(Sample(
                self.t, "vm1", CPUS + cpus, CPUS + cpus, held, 2 * POOL * MIB, tps, 1.0, 100, 900,
                500, "running", 1, CPUS + cpus, 2 * CPUS, int(self.committed), 0, 0, 50,
                f"{CPUS}/{cpus}", host_speed=100.0, mem_nodes_held=f"{KEPT * MIB}/{mib * MIB}",
                host_rss_bytes=int(rss), cold_reads=self.reads,
                cold_records=70000 if cold else 0))
            self.t += STEP_S


def memory(**changes):
    run = Run()
    for name, value in changes.items():
        assert hasattr(run, name), name
        setattr(run, name, value)
    return run.told()
