# SPDX-License-Identifier: GPL-2.0-or-later
"""Made-up runs of `contention`, `peak` and `isolate`: what good and bad engines would have left."""
import made_up
from harness.record.schema import Event, Sample

STEP_S = 0.1


class Engine:
    """One VM with an engine that reports; the test says what it holds and what it does."""

    def __init__(self, report_s=0.5, startup=4):
        self.t, self.report_s, self.held = 0.0, report_s, startup
        self.samples, self.events = [], []
        self.committed = self.done = self.done_s = 0.0
        self.next_report = report_s
        self.cpu_came = 1.0     # of the CPU time that was due, that which came
        self.cpu_ms = self.cpu_due_ms = 0.0

    def hold(self, cpus):
        if cpus != self.held:
            self.events.append(Event(self.t, "vm1", "grant" if cpus > self.held else "lend",
                                     abs(cpus - self.held), 1, "vm1 asked for it", 5.0, {}))
        self.held = cpus

    def run(self, seconds, tps, theta=0.5, offered=None, queue=None):
        """tps(cpus) or a number."""
        for _ in range(round(seconds / STEP_S)):
            rate = (tps(self.held) if callable(tps) else tps) * self.cpu_came
            self.cpu_due_ms += 1000 * made_up.SHARE * self.held * STEP_S
            self.cpu_ms += 1000 * made_up.SHARE * self.held * STEP_S * self.cpu_came
            self.t += STEP_S
            self.committed += rate * STEP_S
            self.done += rate * STEP_S
            self.done_s += STEP_S
            s = Sample(round(self.t, 3), "vm1", self.held, 8, 0, 0, rate, 1.0, 100, 900, 500,
                       "running", 1, self.held, self.held, int(self.committed), 0, 0, 50,
                       f"4/{self.held - 4}", 100.0, cpu_ms=self.cpu_ms,
                       cpu_due_ms=self.cpu_due_ms)
            if self.t >= self.next_report - 1e-9:
                s.engine_t_s, s.engine_tps = round(self.t, 3), self.done / self.done_s
                s.theta, s.offered_ps, s.queue = theta, offered, queue
                self.done = self.done_s = 0.0
                self.next_report += self.report_s
            self.samples.append(s)


def contention(keep_all=False, few_factor=1.1, few_cpu=1.0):
    """few_factor: throughput of four CPUs at high contention, of that of eight; few_cpu: of the CPU
    time that is due then, that which comes."""
    e = Engine(0.25)
    e.hold(8)

    def high(cpus):
        return 2000.0 * (1.0 if cpus == 8 else few_factor)
    e.run(14, lambda cpus: 1000.0 * cpus)
    e.run(3, high, 0.99)
    if not keep_all:
        e.hold(4)
    e.cpu_came = few_cpu
    e.run(17, high, 0.99)
    e.cpu_came = 1.0
    e.run(2, lambda cpus: 1000.0 * cpus)
    e.hold(8)
    e.run(12, lambda cpus: 1000.0 * cpus)
    run = made_up.run("contention", ["vm1"], startup_cpus=4, load={"low": 0.5, "high": 0.99,
                                                                    "seconds": 48}, tier="lend")
    run["host"] = made_up.host()
    return run, e


def peak(static=False, late_s=0.0, close_up=False):
    """late_s: how long the CPUs of the other socket take to come when traffic doubles."""
    period = 0.5 if close_up else 5.0
    e = Engine(0.1 if close_up else 0.5)
    e.run(4 if close_up else 8, 4000.0)
    e.run(3, 3000.0, offered=3000.0, queue=0)
    for i in range(6):
        if i % 2:
            e.hold(4)
            e.run(period, 3000.0, offered=3000.0, queue=0)
            continue
        e.run(late_s, 4000.0, offered=6000.0, queue=100)
        if static:
            e.run(period - late_s, 4000.0, offered=6000.0, queue=9000)
            continue
        e.hold(8)
        e.run(period - late_s, 6000.0, offered=6000.0, queue=10)
    e.run(3, 3000.0, offered=3000.0, queue=0)
    run = made_up.run("peak", ["vm1"], startup_cpus=4, tier="lend", dwell_s=period,
                      load={"close_up": close_up, "period_s": period, "normal": 0.75,
                            "double": 1.5, "seconds": 44, "interval_ms": 100})
    run["host"] = made_up.host()
    return run, e


class Tenants:
    """Two VMs on two sockets."""

    def __init__(self):
        self.t, self.samples, self.events, self.steps = 0.0, [], [], []
        self.held, self.committed = {}, {}
        self.cpu_came = 1.0     # of the CPU time that was due, that which came
        self.cpu_ms, self.cpu_due_ms = {}, {}

    def step(self, action, vm="vm2"):
        self.steps.append({"t_s": round(self.t, 3), "action": action, "vm": vm, "detail": action})

    def hold(self, vm, nodes):
        old, new = sum(self.held.get(vm, (0, 0))), sum(nodes)
        if old != new:
            self.events.append(Event(self.t, vm, "grant" if new > old else "lend", abs(new - old),
                                     0, "the policy changed", 5.0, {}))
        self.held[vm] = nodes

    def run(self, seconds, per_cpu):
        for _ in range(round(seconds / STEP_S)):
            self.t += STEP_S
            for vm, nodes in self.held.items():
                held = sum(nodes)
                self.committed[vm] = self.committed.get(vm, 0) + \
                    per_cpu * held * self.cpu_came * STEP_S
                due = 1000 * made_up.SHARE * held * STEP_S
                self.cpu_due_ms[vm] = self.cpu_due_ms.get(vm, 0.0) + due
                self.cpu_ms[vm] = self.cpu_ms.get(vm, 0.0) + self.cpu_came * due
                self.samples.append(Sample(
                    round(self.t, 3), vm, held, held, 0, 0, per_cpu * held, 1.0, 100, 900, 500,
                    "running" if held else "stopped", int(held > 0), held, held,
                    int(self.committed[vm]), 0, 0, 50, guest_nodes(vm, nodes), 100.0,
                    cpu_ms=self.cpu_ms[vm], cpu_due_ms=self.cpu_due_ms[vm]))


def guest_nodes(vm, sockets):
    """The first node of the second tenant is the second socket."""
    return "/".join(str(n) for n in (sockets if vm == "vm1" else sockets[::-1]))


def isolate(apart=True, thread_worth=0.65, fair_cpu=1.0):
    """thread_worth: what a hyperthread does, of a core; fair_cpu: of the CPU time that is due under
    the policy fair, that which comes."""
    x = Tenants()
    x.step("start", "vm1")
    x.hold("vm1", (2, 2))
    x.run(10, 1000.0)
    x.step("arrive")
    x.step("start")
    for vm, nodes in (("vm1", (4, 0)), ("vm2", (0, 4))):
        x.hold(vm, nodes if apart else (1, 1))
    x.run(8, 1000.0)
    x.step("apart")
    x.run(10, 1000.0 * (thread_worth if apart else 1))
    x.step("policy", "")
    for vm in ("vm1", "vm2"):
        x.hold(vm, (1, 1))
    x.run(8, 1000.0)
    x.step("fair")
    x.cpu_came = fair_cpu
    x.run(10, 1000.0)
    x.cpu_came = 1.0
    x.step("policy", "")
    x.step("stop")
    x.hold("vm2", (0, 0))
    x.run(1, 1000.0)
    x.step("left")
    x.hold("vm1", (2, 2))
    x.run(8, 1000.0)
    x.step("stop", "vm1")
    run = made_up.run("isolate", ["vm1", "vm2"], x.steps, tier="lend", dwell_s=10.0,
                      load={"sockets": {"vm1": [0, 1], "vm2": [1, 0]}})
    run["host"] = {**made_up.host(4), "threads": 2}
    run["policy"] = "isolate" if apart else "fair"
    return run, x
