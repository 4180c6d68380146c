# SPDX-License-Identifier: GPL-2.0-or-later
"""Made-up runs for the tests of the verdicts: what good and bad hosts would have recorded."""
import os
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(TOP, "scripts"), TOP]
sys.dont_write_bytecode = True

from harness.record.schema import Event, Sample  # noqa: E402

STEP_S = 0.25
PER_CPU = 1000.0
SHARE = 0.2     # of a real CPU, that a core has


def host(cores=8):
    return {"spec": f"emulated:2x{cores // 2}x1@0.2", "emulated": True, "sockets": 2,
            "cores": cores, "threads": 1, "share": 0.2, "real_cpus": 2}


def run(scenario, vms, steps=(), **more):
    results = {vm: {"failed": 0, "lost_updates": 0, "committed": 1000} for vm in vms}
    return {"scenario": scenario, "ablate": False, "seed": 1, "time_scale": 1.0,
            "accelerator": "tcg", "host": host(), "policy": "fair", "vms": list(vms),
            "startup_cpus": 1, "dwell_s": 5.0, "steps": list(steps), "results": results,
            "started_at": "2020-01-01T00:00:00Z", "duration_s": 60.0,
            "versions": {"ebb": "0"}, **more}


class Host:
    """Records samples and history of VMs whose holdings the test sets."""

    def __init__(self, give="release"):
        self.t, self.give = 0.0, give
        self.samples, self.events = [], []
        self.vms = {}
        self.speed = 100.0
        self.cpu_came = 1.0     # of the CPU time that was due, that which came
        self.cpu_ms, self.cpu_due_ms = {}, {}

    def set(self, vm, held, engine=True, state="running", tps=None, silent=False):
        """From now on vm holds so many CPUs. tps None: proportional. silent: no history row."""
        old = self.vms.get(vm, {"held": 0, "committed": 0.0})
        if held != old["held"] and not silent:
            kind = "grant" if held > old["held"] else self.give
            self.events.append(Event(self.t, vm, kind, abs(held - old["held"]), 0,
                                     "share of vm grew or shrank", 30.0,
                                     {"agent": 1.0, "libvirt": 25.0, "place": 4.0}))
        self.vms[vm] = {"held": held, "engine": engine, "state": state, "tps": tps,
                        "committed": old["committed"]}

    def run(self, seconds):
        end = self.t + seconds
        while self.t < end - 1e-9:
            for vm, v in self.vms.items():
                tps = 0.0
                if v["engine"] and v["state"] == "running":
                    tps = PER_CPU * v["held"] if v["tps"] is None else v["tps"]
                    tps *= self.cpu_came
                    due = 1000 * SHARE * v["held"] * STEP_S
                    self.cpu_due_ms[vm] = self.cpu_due_ms.get(vm, 0.0) + due
                    self.cpu_ms[vm] = self.cpu_ms.get(vm, 0.0) + self.cpu_came * due
                v["committed"] += tps * STEP_S
                engine = int(v["engine"])
                self.samples.append(Sample(
                    round(self.t, 3), vm, v["held"] if v["state"] == "running" else 0, v["held"],
                    0, 0, tps, 1.0, 100, 900, 500, v["state"], engine,
                    v["held"] * engine, v["held"], int(v["committed"]), 0, 0, 50, "0/0",
                    self.speed, cpu_ms=round(self.cpu_ms.get(vm, 0.0), 3),
                    cpu_due_ms=round(self.cpu_due_ms.get(vm, 0.0), 3)))
            self.t += STEP_S


def spot(delay_s=1.0, dwell_s=8.0, share=None, tier="unplug", ready_s=0.1, again=()):
    """A whole `spot`. delay_s: how long shares take; share(joined, vm): CPUs, None: fair.

    ready_s: how long before that the engine of a VM that joined asks for CPUs.
    again: VMs that leave and come again, in this order."""
    h, steps, joined = Host("release" if tier == "unplug" else "lend"), [], []

    def fair(vms, vm):
        return 8 // len(vms) + (vms.index(vm) < 8 % len(vms))

    def settle(asker=None):
        h.run(delay_s)
        if asker:
            h.events.append(Event(h.t - ready_s, asker, "request", 1, 0, "asks for 1 CPU"))
        for vm in joined:
            h.set(vm, (share or fair)(joined, vm))
        h.run(dwell_s)

    def join(vm):
        steps.append({"t_s": h.t, "action": "start", "vm": vm})
        h.set(vm, 1, engine=False)
        h.run(1.0)
        h.set(vm, 1)
        joined.append(vm)
        settle(vm)

    def leave(vm):
        steps.append({"t_s": h.t, "action": "stop", "vm": vm})
        h.set(vm, 1, engine=False)
        h.run(0.5)
        h.set(vm, 0, engine=False, state="stopped")
        h.vms[vm]["committed"] = 0.0
        joined.remove(vm)
        if joined:
            settle()
        else:
            h.run(1.0)

    for vm in ("vm1", "vm2", "vm3"):
        join(vm)
    earlier = {}
    for vm in again:
        leave(vm)
        earlier.setdefault(vm, []).append({"failed": 0, "lost_updates": 0, "committed": 500})
        join(vm)
    for vm in ("vm3", "vm2", "vm1"):
        leave(vm)
    return run("spot", ["vm1", "vm2", "vm3"], steps, tier=tier, joins=3 + len(again),
               earlier_results=earlier), h


def scale(tps=None, top=8, dwell_s=5.0, machine=None):
    """A whole `scale`. tps(cpus, way): throughput of a plateau, None: proportional.

    machine(host, cpus, way) may set the host's speed, and the CPU time that comes, and returns the
    throughput.
    """
    h = Host()
    for way, sizes in (("up", range(1, top + 1)), ("down", range(top - 1, 0, -1))):
        for cpus in sizes:
            if machine:
                h.set("vm1", cpus, tps=machine(h, cpus, way))
            else:
                h.set("vm1", cpus, tps=tps(cpus, way) if tps else None)
            h.run(dwell_s)
    return run("scale", ["vm1"]), h
