# SPDX-License-Identifier: GPL-2.0-or-later
"""Rounds of bench-cpu: one core goes from one VM to another, in each way that there is.

The VMs have one core each and share the third of the host. Which of them has it follows from their
weights, which the operator sets; everything else is what engines, drivers, devices and agent do.
"""
import json
import os
import socket
import statistics
import time

from harness.lab.process import SetupError
from tests.vm import rig

from . import metrics
from .cpu_vm import CpuVm
from .vm import Refused

SIZE = "1 core"
TIERS = {"lend": "ebb", "park": "ebb, park", "unplug": "ebb, unplug"}   # variants
FORCE, STOCK = "ebb, force", "stock"
# Weight of the first VM with and without the core; the second keeps its own.
HEAVY, LIGHT, WEIGHT = 10000, 1, 100
FORCE_DEADLINE_MS = 20
ALIVE_COMMITS = 1
SETTLE_S = 0.01             # between two rounds: what trails behind an exchange is in no other


class Control:
    """The agent's control socket, without a program to start for each word."""

    def __init__(self):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(os.path.join(rig.lab().run_dir, "control.sock"))
        self.socket.settimeout(30)
        self.lines = self.socket.makefile("r")

    def ask(self, **request):
        self.socket.sendall(json.dumps(request).encode() + b"\n")
        answer = json.loads(self.lines.readline())
        if not answer["ok"]:
            raise SetupError(f"{request}: {answer['error']['message']}")
        return answer

    def set(self, vm, **values):
        self.ask(cmd="set", vm=vm.name, values={k.replace("_", "-"): v
                                                for k, v in values.items()})

    def close(self):
        self.socket.close()


class Pair:
    """Two VMs and the core that goes from `owner` to `other` and back."""

    def __init__(self, values):
        self.values = values
        self.owner = CpuVm("cpu-a", tier="lend", plug="ahead").start()
        self.other = CpuVm("cpu-b", tier="lend", plug="ahead").start()
        self.control = Control()
        self.first = self.owner
        self.control.set(self.first, weight=HEAVY)
        self.control.set(self.other, weight=WEIGHT)
        rig.wait_for("the first VM has the core", lambda: self.owner.guest.held() == 2, 60)
        rig.wait_for("both VMs have all their vCPUs", lambda: all(
            len(vm.guest.plugged()) == 2 for vm in self.vms), 60)

    @property
    def vms(self):
        return self.owner, self.other

    def start_round(self, tier):
        for vm in self.vms:
            vm.ask(f"tier {tier}", "tier")
            vm.set_clock()
            vm.told.clear()
        time.sleep(SETTLE_S)

    def move(self):
        """The operator's word for the core to go; when it was given."""
        start = time.monotonic()
        self.control.set(self.first, weight=LIGHT if self.owner is self.first else HEAVY)
        return start

    def swap(self):
        self.owner, self.other = self.other, self.owner

    def exchange(self, tier, is_noted=True):
        """One hand-over with a guest that does what it is asked to."""
        self.start_round(tier)
        said = self.move()
        gave, took = self.owner.event("gave"), self.other.event("took")
        self.swap()
        if not is_noted:
            return
        note = _noter(self.values, TIERS[tier])
        note("hand-over", gave["told_ns"], took["first_ns"])
        note("release", gave["stopped_ns"], gave["given_ns"])
        note("release to first transaction", gave["given_ns"], took["first_ns"])
        note("decide", said, gave["told_ns"])
        note("stop the worker", gave["told_ns"], gave["stopped_ns"])
        note("take", took["told_ns"], took["added_ns"])
        note("start the worker", took["added_ns"], took["first_ns"])
        for kind, event in (("release", gave), ("take", took)):
            self.values.note(f"{kind}: host", SIZE, TIERS[tier], event["host_ns"] / 1e6)
            self.values.note(f"{kind}: guest kernel", SIZE, TIERS[tier], event["kernel_ns"] / 1e6)

    def force(self):
        """One hand-over past a guest that goes on computing; true if that guest lives after it."""
        self.start_round("ignore")
        asked = time.time()
        self.move()
        took = self.other.event("took")
        row = next(r for r in self.control.ask(cmd="history", vm=self.owner.name, event="demand",
                                               since=asked - 0.05, limit=10)["history"][::-1])
        deadline = row["mono_s"] + FORCE_DEADLINE_MS / 1000
        note = _noter(self.values, FORCE)
        note("deadline to usable", deadline, took["added_ns"])
        note("deadline to first transaction", deadline, took["first_ns"])
        is_alive = self._lives(self.owner)
        self.owner.tell("give")
        self.owner.event("gave")
        self.swap()
        return is_alive

    @staticmethod
    def _lives(vm):
        """It answers, and its worker commits on the CPU that has no core any more."""
        before = vm.ask("count", "committed")["committed"]
        for _ in range(100):
            time.sleep(0.002)
            if vm.ask("count", "committed")["committed"] - before >= ALIVE_COMMITS:
                return True
        return False

    def close(self):
        self.control.close()
        for vm in self.vms:
            vm.close()


def _noter(values, variant):
    return lambda name, start, end: values.note(name, SIZE, variant, (end - start) * 1000)


def measure_ebb(values, rounds, forces):
    """{tier: rounds}; returns how many guests lived through being forced."""
    pair = Pair(values)
    lived = 0
    try:
        for tier, count in rounds.items():
            start = time.monotonic()
            # The first goes from what was there before to this tier.
            for i in range(count + 2):
                _attempt(values, TIERS[tier], lambda i=i, t=tier: pair.exchange(t, i >= 2))
            print(f"{TIERS[tier]:14} {count:5} rounds {time.monotonic() - start:6.1f} s",
                  flush=True)
        for vm in pair.vms:
            pair.control.set(vm, deadline_ms=FORCE_DEADLINE_MS)
        start = time.monotonic()
        for _ in range(forces):
            lived += bool(_attempt(values, FORCE, pair.force))
        print(f"{FORCE:14} {forces:5} rounds {time.monotonic() - start:6.1f} s", flush=True)
    finally:
        pair.close()
    return lived


def _attempt(values, variant, what):
    """A guest that refuses costs a round, not the run; an agent or VM that is gone ends it."""
    try:
        return what()
    except Refused as e:
        print(e, flush=True)
        values.fail("hand-over" if variant != FORCE else "deadline to usable", SIZE, variant)
        return None


def measure_stock(values, rounds, virsh):
    """libvirt and sysfs in VMs that the agent leaves alone: offline, unplug, plug, online."""
    vms = [CpuVm(name, is_stock=True).start() for name in ("cpu-c", "cpu-d")]
    note = _noter(values, STOCK)
    start = time.monotonic()
    try:
        virsh.timed(f"setvcpu {vms[0].name} 1 --enable --live")
        vms[0].ask("up 1", "first_ns")
        for _ in range(rounds):
            owner, other = vms
            for vm in vms:
                vm.set_clock()
            down = owner.ask("down 1", "offline_ns")
            virsh.timed(f"setvcpu {owner.name} 1 --disable --live")
            free = time.monotonic()
            virsh.timed(f"setvcpu {other.name} 1 --enable --live")
            up = other.ask("up 1", "first_ns")
            note("hand-over", down["told_ns"], up["first_ns"])
            note("release", down["stopped_ns"], free)
            note("release to first transaction", free, up["first_ns"])
            note("stop the worker", down["told_ns"], down["stopped_ns"])
            note("start the worker", up["added_ns"], up["first_ns"])
            vms.reverse()
        print(f"{STOCK:14} {rounds:5} rounds {time.monotonic() - start:6.1f} s", flush=True)
    finally:
        for vm in vms:
            vm.close()


def bounds(rows, lived, forces, values):
    """What lending, parking and force promise on an idle host."""
    late = values.of.get(("deadline to usable", SIZE, FORCE), [])
    in_time = 100 * sum(ms <= 5 for ms in late) / forces if forces else None
    return [
        metrics.bound(rows, ("hand-over", SIZE, "ebb"), "median", "<= 5",
                      "lend: worker told to first transaction of the new owner, median in ms"),
        _bound("force: core usable by its new owner within 5 ms after the deadline, % of trials",
               in_time, ">= 99"),
        _bound("force: guests alive afterwards, % of trials",
               100 * lived / forces if forces else None, ">= 100"),
        _bound("park: release, times as fast as stock unplug, medians",
               _ratio(values, "release", STOCK, TIERS["park"]), ">= 3"),
    ]


def _bound(text, value, bound):
    ok = value is not None and value >= float(bound.split()[1])
    return {"text": text, "value": metrics.rounded(value), "bound": bound, "ok": ok}


def _ratio(values, name, slow, fast):
    medians = [statistics.median(values.of.get((name, SIZE, v)) or [0]) for v in (slow, fast)]
    return medians[0] / medians[1] if all(medians) else None
