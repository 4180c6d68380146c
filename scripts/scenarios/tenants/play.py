# SPDX-License-Identifier: GPL-2.0-or-later
"""`tenants` (paper 4.1, figure 4): one engine with a partition per tenant against a VM per tenant.

The emulated host has two sockets of the same size. On one there is a VM with one engine process, on
the other the tenants' VMs. In each turn both run for the same time, so that whatever the machine
does meanwhile (how fast its CPUs are, what else runs) meets both alike.
"""
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from harness.judge import delivery
from harness.lab import domain, hostmem, versions
from harness.lab.lab import TOP, Lab
from harness.lab.process import SetupError, run
from harness.lab.oltp_node import parse
from harness.measure import core_meter, sampling
from harness.stage import sliced_run
from harness.stage.plan import TOUR_MS

from .plan import CORES, SIZES, SOCKETS, cpus_of
from .verdict import ENGINE, TENANTS, VMS

RECORDS_PER_WORKER = 20000      # 1 KiB each: the size follows the workers, as in the paper
WORKLOAD = "--operations 10 --update 0 --theta 0.5"
MEMORY_MIB = 256
SLICE_S = 1.5
# A VM may be some 3% faster or slower than the same VM booted again, as long as it runs (8% with
# random addresses in the guest, see ebb.tour), so the VMs of both sides boot anew several times.
BOOTS, TURNS = 5, 2             # of all VMs, and turns in each
# At a slice's begin and end, in which CPU time is not counted: a guest begins some time after it
# was told to.
EDGE_S = 0.1
LOOK_S = 0.05
WARM_UP_S = 2.0          # not measured: emulated code is translated when it first runs
BOOT_S, LOAD_S = 60, 90


@dataclass
class Look:
    """What delivery.Clock reads, of one VM."""
    read_at: float
    cpu_ms: float
    cpu_due_ms: float


class Watch(threading.Thread):
    """Looks several times a second at the CPU time of the VMs."""

    def __init__(self, meter):
        super().__init__(name="watch", daemon=True)
        self.meter, self.lock, self.over = meter, threading.Lock(), threading.Event()
        self.seen = []          # [(time, {VM: Delivered so far})]

    def run(self):
        while not self.over.wait(LOOK_S):
            with self.lock:
                now = time.monotonic()
                self.meter.look(now)
                self.seen.append((now, dict(self.meter.given)))

    def add(self, vm):
        with self.lock:
            self.meter.pid_of[vm.name] = lambda: hostmem.qemu_pid(vm.uuid)

    def spread(self):
        """Binds each emulated core to one of the machine's CPUs, in turn, so that both sides have
        the same share of each: one may be slower than the other for seconds."""
        cpus = sorted(os.sched_getaffinity(0))
        with self.lock:
            for core, threads in self.meter.places().items():
                for thread in threads:
                    os.sched_setaffinity(thread, {cpus[core % len(cpus)]})

    def stop(self):
        self.over.set()
        self.join(5)

    def between(self, name, begin, end):
        """delivery.Delivered of a VM; None: not known."""
        with self.lock:
            rows = [Look(t, 1000 * given[name].cpu_s, 1000 * given[name].due_s)
                    for t, given in self.seen if name in given]
        return delivery.Clock(rows).between(begin, end)


class Guest:
    """A VM and the oltp-node in it, reached over the VM's command terminal."""

    def __init__(self, lab, boot, vm, watch):
        self.lab, self.boot, self.vm, self.seen = lab, boot, vm, 0
        self.watch = watch

    def shell(self, command, patience_s=30):
        return run([os.path.join(TOP, "scripts", "vm-exec"), "-t", str(patience_s),
                    domain.command_path(self.boot, self.vm), command], timeout=patience_s + 10)

    def boot_up(self):
        self.lab.virsh("start", self.boot.prefix + self.vm.name)
        self.shell("true", BOOT_S)

    def power_off(self):
        self.lab.virsh("destroy", self.boot.prefix + self.vm.name)

    def start(self, args):
        """Starts oltp-node; it is ready when it has loaded its tables."""
        self.seen = 0
        self.shell("rm -f /run/node; mkfifo /run/node; "
                   f"oltp-node {args} <>/run/node >/run/node.out 2>&1 &")
        self.hear("oltp-node: ready", LOAD_S)

    def tell(self, line):
        self.shell(f"echo {line} >/run/node")

    def hear(self, prefix, patience_s):
        """The next line that the program says; asks for it a few times a second."""
        end = time.monotonic() + patience_s
        while time.monotonic() < end:
            lines = self.shell("cat /run/node.out").splitlines()
            if len(lines) > self.seen:
                line = lines[self.seen].strip()
                self.seen += 1
                if not line.startswith(prefix):
                    raise SetupError(f"oltp-node in {self.vm.name} said {line!r}")
                return line
            time.sleep(0.3)
        raise SetupError(f"oltp-node in {self.vm.name} does not say {prefix!r}")

    def be_greedy(self):
        """Something that computes on each CPU, until killed."""
        self.shell("for i in $(seq $(nproc)); do (while :; do :; done) & echo $!; done "
                   ">/run/greedy")

    def stop_greed(self):
        self.shell("kill $(cat /run/greedy)")

    def run_slice(self, seconds):
        """(what the engine said, delivery.Delivered meanwhile)"""
        self.tell(f"run {seconds:g}")
        begin = time.monotonic()
        # Not asked meanwhile: an answer costs time of a core that is measured.
        time.sleep(seconds + 0.2)
        given = self.watch.between(self.vm.name, begin + EDGE_S, begin + seconds - EDGE_S)
        return parse("oltp-node-result ", self.hear("oltp-node-result ", 30)), given

    def audit(self):
        self.tell("audit")
        return parse("oltp-node-audit ", self.hear("oltp-node-audit ", LOAD_S))

    def stop(self):
        self.tell("quit")


class Scene:
    def __init__(self, a, lab, boot, found):
        self.a, self.lab, self.boot, self.found = a, lab, boot, found
        self.seconds = SLICE_S * a.time_scale
        self.totals = {}
        self.watch = Watch(core_meter.of_lab(lab, (), SOCKETS * CORES))
        self.watch.start()
        self.all = ThreadPoolExecutor(SOCKETS * CORES)

    def guest(self, name, cpus, socket):
        # All may grow to a whole socket: QEMU emulates a VM that never has a second CPU with less
        # work for atomic operations.
        vm = domain.Vm(name, [domain.Cell(CORES, cpus, socket)], MEMORY_MIB,
                       options={"name": name, "shell": "ttyS1", "monitor": "0",
                                "tour": TOUR_MS})
        self.lab.define(self.boot, vm)
        self.watch.add(vm)
        return Guest(self.lab, self.boot, vm, self.watch)

    def each(self, what, guests):
        return list(self.all.map(what, guests))

    def load_and_run(self, engine, guests, tenants, first_turn):
        """All turns of a boot for one number of tenants."""
        cpus = cpus_of(tenants)
        load = f"{WORKLOAD} --records {RECORDS_PER_WORKER * cpus} --seed {self.a.seed}"
        self.found.step("load", "", f"{tenants} tenants of {cpus} CPUs load their tables")
        waiting = self.all.submit(engine.start, f"{load} --tenants {tenants} "
                                                f"--cpus 0-{cpus * tenants - 1}")
        self.each(lambda g: g.start(f"{load} --tenants 1 --cpus 0-{cpus - 1}"), guests)
        waiting.result()
        self.each(lambda g: g.run_slice(WARM_UP_S), [engine, *guests])
        for turn in range(first_turn, first_turn + TURNS):
            self.slice(engine, guests, tenants, turn)
        for guest in [engine, *guests]:
            self.add_total(guest.vm.name, guest.audit())
            guest.stop()

    def slice(self, engine, guests, tenants, turn):
        cpus = cpus_of(tenants)
        self.found.step("slice", "", f"{tenants} tenants, turn {turn + 1} of {BOOTS * TURNS}: "
                        "in one engine, and beside it a VM each")
        # Switched off: the cores are not the tenants' own, something else works on them, too.
        if self.a.ablate:
            self.each(Guest.be_greedy, guests)
        told = self.each(lambda g: g.run_slice(self.seconds), [engine, *guests])
        self.add(engine, *told[0], cpus * tenants, ENGINE, tenants, turn)
        for guest, of_guest in zip(guests, told[1:]):
            self.add(guest, *of_guest, cpus, VMS, tenants, turn)
        if self.a.ablate:
            self.each(Guest.stop_greed, guests)

    def add(self, guest, result, given, cpus, variant, tenants, turn):
        self.found.add(guest.vm.name, cpus, result, given, variant=variant, turn=turn,
                       tenants=tenants)
        self.add_total(guest.vm.name, result)

    def add_total(self, name, said):
        total = self.totals.setdefault(name, {"committed": 0, "failed": 0, "aborted": 0,
                                              "lost_updates": 0})
        total["committed"] += said.get("committed", 0)
        total["failed"] += said.get("failed", 0)
        total["aborted"] += said.get("conflicts", 0)
        total["lost_updates"] += said.get("lost_updates", 0) + said.get("inconsistent_reads", 0)

    def play(self):
        engine = self.guest("engine", CORES, 0)
        for n, cpus in SIZES:
            guests = [self.guest(f"vm{n}{chr(ord('a') + i)}", cpus, 1) for i in range(n)]
            for boot in range(BOOTS):
                self.found.step("start", "", f"{n} VMs of {cpus} CPUs boot, and that of the engine")
                self.each(Guest.boot_up, [engine, *guests])
                self.watch.spread()
                for tenants in [t for t in TENANTS if cpus_of(t) == cpus]:
                    self.load_and_run(engine, guests[:tenants], tenants, boot * TURNS)
                self.each(Guest.power_off, [engine, *guests])


def play(a, p, accelerator):
    with Lab(p.host["spec"], p.policy, os.path.join(a.out, "log")) as lab:
        boot = lab.boot(accelerator)
        lab.start_agent()
        unix_start = time.time()
        found = sliced_run.Slices()
        scene = Scene(a, lab, boot, found)
        try:
            scene.play()
        finally:
            scene.watch.stop()
            scene.all.shutdown(wait=False, cancel_futures=True)
        sliced_run.record(a, p, accelerator, found, scene.totals, versions.of_lab(lab),
                          sampling.history(lab, unix_start), engine=WORKLOAD,
                          cores_measured=CORES)
