# SPDX-License-Identifier: GPL-2.0-or-later
"""What happens in `reserve`, part by part. Each has a lab and a volume server of its own.

What is recorded of I/O are the counters of the volume server, and of part 4 besides what its
clients saw.
"""
import os
import shutil
import time
from contextlib import contextmanager
from dataclasses import astuple
from statistics import mean

from harness.judge import promises
from harness.lab import domain, hostmem, versions
from harness.lab.console import STATISTICS, Console, statistics
from harness.lab.lab import TOP, Lab
from harness.lab.process import SetupError, run
from harness.lab.volumes import Volume, VolumeServer
from harness.measure.io_meter import EVERY_S, IoMeter, TracedLoad
from harness.measure.neighbours import Neighbours, cpu_s, vcpus_of
from harness.record import schema
from harness.stage import sliced_run
from harness.stage.stage import RESULT, result_in, result_of

from . import plan
from .plan import GREEDY, MEET, NEIGHBOURS, OVERBOOKED

START_S = 100       # longest until an engine runs, from the start of its VM on
LOAD_S = 150        # longest until an engine with TPC-C-like tables has loaded them
SHELL_S = 120       # the most for a command in a guest: moments, if no other program runs
END_S = 60          # longest until an engine has verified its records and ended
CLOSE_LOOK_S = 1.5  # before and after a change of promises
CLOSE_LOOK_EVERY_S = 0.02


class Scene:
    """The part that runs. told: what goes into run.json."""

    def __init__(self, a, p, accelerator):
        self.a, self.p, self.accelerator = a, p, accelerator
        self.found, self.told = sliced_run.Slices(), p.more["reserve"]
        self.mode, self.results, self.versions = self.told["mode"], {}, versions.of_programs()
        self.log_dir = os.path.join(a.out, "log")
        self.lab = self.boot = self.server = self.meter = None

    @contextmanager
    def volumes(self, names, disk_iops=None):
        """A volume server, whose counters are recorded. disk_iops: of its disk, if not as usual."""
        volumes = [Volume(name, plan.VOLUME_MIB) for name in names]
        with VolumeServer(self.log_dir, volumes, disk_iops or self.told["disk_iops"],
                          self.told["depth"]) as self.server:
            self.meter = IoMeter(self.server, self.found.elapsed)
            self.meter.start()
            try:
                yield
            finally:
                self.meter.stop()

    @contextmanager
    def vms(self, vms, host, disk_iops=None, **agent_options):
        """The same with a lab and VMs, each with a volume of its name. They are not started."""
        with Lab(host["spec"], self.p.policy, self.log_dir, agent_options) as lab, \
                self.volumes([vm.name for vm in vms], disk_iops):
            self.lab, self.boot = lab, lab.boot(self.accelerator)
            self.boot.volume_socket = self.server.nbd
            lab.agent_options["volume_socket"] = self.server.control
            self.versions = versions.of_lab(lab)
            try:
                for vm in vms:
                    lab.define(self.boot, vm)
                lab.start_agent()
                yield
            finally:
                for path in lab.libvirt_logs() + [domain.console_path(self.boot, vm)
                                                  for vm in vms]:
                    shutil.copy(path, self.log_dir)
                self.lab = None

    def promise(self, volume, iops, most, mode=None):
        """The one place where this scenario says what a volume is promised: in the SLA of the VM
        of that name, which the agent tells the server, or to the server where there is no VM."""
        keys = plan.promise(mode or self.mode, iops, most)
        if self.lab:
            self.lab.ask("set", self.boot.prefix + volume, *(
                f"io.{key.replace('_', '-')}={value or 0}" for key, value in keys.items()))
        else:
            self.server.promise(volume, **keys)

    def promise_cpu(self, vm, mode, has_reservation):
        self.lab.ask("set", self.boot.prefix + vm.name, *(
            f"{key}={value}" for key, value in plan.cpu_promise(mode, has_reservation).items()))

    def promise_memory(self, vm, mode):
        self.lab.ask("set", self.boot.prefix + vm.name, *(
            f"{key}={value}" for key, value in plan.mem_promise(mode).items()))

    def promise_all(self, mode, t1, others):
        """What the mode promises t1; all others have the same maximum, if there are maxima."""
        self.promise(t1.name, plan.T1_IOPS, plan.MAX_IOPS, mode)
        self.promise_cpu(t1, mode, True)
        self.promise_memory(t1, mode)
        for vm in others:
            self.promise(vm.name, None, plan.MAX_IOPS,
                         plan.MAX_ONLY if mode == plan.RESERVED else mode)
            self.promise_cpu(vm, mode, False)

    def ledger(self):
        """Rows of the ledger until now, by the names that VMs have in this scenario; they go into
        ledger.json, too."""
        answer = self.lab.ask("ledger")
        for row in answer["ledger"]:
            for name in ("vm", "reason"):
                row[name] = row[name].replace(self.boot.prefix, "")
        schema.write_json(os.path.join(self.a.out, schema.LEDGER), answer)
        return answer["ledger"]

    def watch(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.meter.error:
                raise SetupError(f"ebb-volumed: {self.meter.error}")
            time.sleep(min(0.1, max(0.0, end - time.monotonic())))

    def looks(self):
        """For run.json."""
        return {volume: [astuple(look) for look in looks]
                for volume, looks in self.meter.looks.items()}

    # ---- VMs ----

    def start(self, vm):
        """Returns when its system is up; on a core that others share, so one after the other."""
        self.found.step("start", vm.name, f"{vm.name} starts")
        self.lab.virsh("start", self.boot.prefix + vm.name)
        self.hear(self.console(vm), lambda line: line.startswith("ebb-init: ready"), START_S,
                  f"{vm.name} is not up")

    def suspend(self, vms):
        for vm in vms:
            self.lab.virsh("suspend", self.boot.prefix + vm.name)

    def resume(self, vms):
        for vm in vms:
            self.lab.virsh("resume", self.boot.prefix + vm.name)

    def console(self, vm):
        return Console(domain.console_path(self.boot, vm))

    def hear(self, console, what, patience_s, words):
        """The first line on a console that is of interest: what(line) is true."""
        end = time.monotonic() + patience_s * self.a.time_scale
        while time.monotonic() < end:
            for line in console.lines():
                if what(line):
                    return line
            self.watch(0.1)
        raise SetupError(f"{words} within {patience_s * self.a.time_scale:g} s, see "
                         f"{console.path}")

    def shell(self, vm, command, patience_s=SHELL_S):
        return run([os.path.join(TOP, "scripts", "vm-exec"), "-t", str(patience_s),
                    domain.command_path(self.boot, vm), command], timeout=patience_s + 10)


def hear_engine(scene, vm, words, patience_s):
    """Waits until the engine of a VM of part 1 has said a line that begins with these words.
    Returns the last such line."""
    end = time.monotonic() + patience_s * scene.a.time_scale
    while True:
        line = scene.shell(vm, f"grep '^{words}' /run/engine | tail -n 1").strip()
        if line:
            return line
        if time.monotonic() > end:
            raise SetupError(f"the engine of {vm.name} did not say {words!r} within "
                             f"{patience_s * scene.a.time_scale:g} s")
        scene.watch(1.0)


def meet(scene):
    """Part 1: two VMs with the same load; their promises are swapped in the middle."""
    m = scene.told[MEET]
    vms = [plan.meet_vm(i) for i in range(len(plan.READERS))]
    with scene.vms(vms, scene.p.host, m["disk_iops"]):
        for vm in vms:
            scene.start(vm)
            scene.shell(vm, plan.meet_command(scene.a.seed))
        for vm in vms:
            hear_engine(scene, vm, "oltp: t=", START_S)
            scene.shell(vm, plan.meet_blocks_command())
        promised = [m["high"], m["low"]]
        for vm, iops in zip(vms, promised):
            scene.promise(vm.name, iops, m["high"])
        scene.watch(plan.SETTLE_S)
        scene.found.step("promises", "", f"vm1 is promised {m['high']} IOPS, vm2 {m['low']}")
        m["begin_s"] = scene.found.elapsed()
        scene.watch(m["half_s"] - CLOSE_LOOK_S)
        scene.meter.every_s = CLOSE_LOOK_EVERY_S
        scene.watch(CLOSE_LOOK_S)
        m["swap_s"] = scene.found.elapsed()
        # The lower one first: no more than there is is promised meanwhile.
        for vm, iops in zip(vms, reversed(promised)):
            scene.promise(vm.name, iops, m["high"])
        m["swapped_s"] = scene.found.elapsed()
        scene.watch(CLOSE_LOOK_S)
        scene.found.step("promises", "", "the promises of vm1 and vm2 were swapped")
        scene.meter.every_s = EVERY_S
        scene.watch(m["half_s"] - CLOSE_LOOK_S)
        m["end_s"] = scene.found.elapsed()
        m["looks"] = scene.looks()
        for vm in vms:
            scene.found.step("stop", vm.name, f"the engine of {vm.name} is told to end")
            scene.shell(vm, "kill -TERM $(pidof dd oltp-server)")
        for vm in vms:
            add_result(scene, vm, result_in(hear_engine(scene, vm, RESULT, END_S)),
                       ("committed", "failed"))


# ---- parts 2 and 3 ----

def engine(scene, vm, console, options, seconds):
    """Starts an engine in a VM whose core is idle; returns when it runs, with the time at which it
    began."""
    console.skip()
    scene.shell(vm, f"oltp-server {plan.TPCC} --seed {scene.a.seed} --elastic none "
                    f"--interval-ms {plan.REPORT_MS} --seconds {seconds:g} {options} "
                    ">/dev/console 2>&1 &", START_S)
    line = scene.hear(console, STATISTICS.match, LOAD_S, f"the engine of {vm.name} does not run")
    return scene.found.elapsed() - float(line.split()[1].removeprefix("t="))


class Watched:
    """t1 and the VMs that share its core, phase after phase."""

    def __init__(self, scene, t1, others):
        self.scene, self.told, self.t1 = scene, scene.told[GREEDY], t1
        self.console = scene.console(t1)
        self.vcpus = vcpus_of(hostmem.qemu_pid(t1.uuid))
        self.other_vcpus = [thread for vm in others
                            for thread in vcpus_of(hostmem.qemu_pid(vm.uuid))]
        self.told["said"], self.told["phases"] = [], []

    def follow(self, seconds):
        """Records what the engine says of itself, at the time when it does."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for line in self.console.lines():
                if STATISTICS.match(line):
                    says = statistics(line)
                    self.told["said"].append((self.scene.found.elapsed(), says["tps"],
                                              says.get("cold_reads", 0)))
            self.scene.watch(0.1)

    def _now(self, loop):
        look = self.scene.meter.looks[self.t1.name][-1]
        others_s = cpu_s(self.other_vcpus) + (loop.cpu_s() if loop else 0.0)
        return self.scene.found.elapsed(), cpu_s(self.vcpus), others_s, look.issued, look.waiting_s

    def phase(self, mode, count, loop=None, is_turn=False):
        """loop: a program that computes on the core of t1."""
        beside = f"{count} greedy tenants" if not loop else "a loop that computes"
        self.scene.found.step("phase", "", f"t1 beside {beside} ({mode})")
        self.follow(self.told["turn_settle_s" if is_turn else "settle_s"])
        before = self._now(loop)
        self.follow(self.told["turn_s" if is_turn else "phase_s"])
        after = self._now(loop)
        t1_s, others_s, issued, waiting_s = (b - a for a, b in zip(before[1:], after[1:]))
        self.told["phases"].append({
            "mode": mode, "greedy": count, "has_loop": loop is not None, "is_turn": is_turn,
            "begin_s": before[0], "end_s": after[0], "t1_s": t1_s, "others_s": others_s,
            "issued": issued, "waiting_s": waiting_s})

    def alone(self, mode, is_turn=False):
        """Where t1 has a reservation, beside a loop (docs/scenarios.md says why)."""
        if mode != plan.RESERVED:
            self.phase(mode, 0, None, is_turn)
            return
        with Neighbours(self.scene.lab, 0, 1, self.vcpus[0]) as loop:
            loop.compute()
            self.phase(mode, 0, loop, is_turn)

    def turns(self, mode, others):
        """others: they run, and do again at the end."""
        for _ in range(self.told["turns"]):
            self.scene.suspend(others)
            self.alone(mode, True)
            self.scene.resume(others)
            self.phase(mode, len(others), None, True)


def greedy(scene):
    """Part 2: greedy tenants come one by one, with what the mode promises, then with maxima only,
    then without any promise. Until it comes a tenant is suspended."""
    g = scene.told[GREEDY]
    t1 = plan.pooled_tpcc_vm()
    others = [plan.greedy_vm(i) for i in range(g["tenants"])]
    with scene.vms([t1] + others, plan.cpu_host(g["core_share"]), shared_cores="1",
                   pool_mib=g["pool_mib"]):
        for vm in others:
            scene.start(vm)
            scene.suspend([vm])
        scene.start(t1)
        watched = Watched(scene, t1, others)
        # The tables are loaded with as much CPU time as there is, into the memory of the mode.
        scene.promise_memory(t1, scene.mode)
        scene.shell(t1, "mkdir /cold/log")
        engine(scene, t1, watched.console, f"{plan.LOG} {plan.COLD}", 3600)
        for mode in (scene.mode, plan.MAX_ONLY, plan.NONE):
            scene.promise_all(mode, t1, others)
            if mode == plan.RESERVED:
                watched.phase(mode, 0)
            watched.alone(mode)
            for count, vm in enumerate(others, 1):
                scene.resume([vm])
                watched.phase(mode, count)
            if "ledger" not in g:
                watched.turns(mode, others)
                g["ledger"] = scene.ledger()
            scene.suspend(others)
        scene.promise_all(plan.NONE, t1, others)
        scene.shell(t1, "kill -TERM $(pidof oltp-server)")
        scene.hear(watched.console, lambda line: line.startswith(RESULT), END_S,
                   "the engine of t1 does not end")
        add_result(scene, t1, result_of(watched.console.path))


class Crowd:
    """t1 and the neighbours of part 3. Tables are loaded and verified while the neighbours rest."""

    def __init__(self, scene, t1, others):
        self.scene, self.told, self.t1, self.others = scene, scene.told[NEIGHBOURS], t1, others
        self.console, self.vcpus = scene.console(t1), vcpus_of(hostmem.qemu_pid(t1.uuid))

    @contextmanager
    def engine(self, what, rate, seconds):
        """Gives the time at which transactions begin to arrive, so many per second, for so long.
        After that the engine ends."""
        quiet = plan.QUIET_S * self.scene.a.time_scale
        self.scene.promise_cpu(self.t1, plan.NONE, False)
        self.scene.found.step("load", self.t1.name, f"{self.t1.name} loads its tables ({what})")
        arrivals = plan.ARRIVALS.format(at=quiet, rate=rate)
        begun = engine(self.scene, self.t1, self.console, f"--rate-schedule {arrivals}",
                       quiet + seconds)
        self.others.compute()
        yield begun + quiet
        self.others.rest()
        self.scene.promise_cpu(self.t1, plan.NONE, False)
        self.scene.hear(self.console, lambda line: line.startswith(RESULT), END_S,
                        f"the engine of {self.t1.name} does not end")
        add_result(self.scene, self.t1, result_of(self.console.path))

    def until(self, at_s):
        self.scene.watch(at_s - self.scene.found.elapsed())

    def measure(self, mode, rate, end_s):
        """Samples until end_s; returns the CPU time of t1 and of its neighbours."""
        def now():
            return self.scene.found.elapsed(), cpu_s(self.vcpus), self.others.cpu_s()

        self.scene.found.step(
            "run", self.t1.name, f"{rate:,} transactions/s arrive at {self.t1.name}, beside "
            f"{self.told['count']} neighbours that compute ({mode})")
        before = now()
        self.until(end_s)
        seconds, t1_s, others_s = (b - a for a, b in zip(before, now()))
        return {"mode": mode, "seconds": seconds, "t1_s": t1_s, "others_s": others_s}

    def flood(self, modes):
        """What t1 gets of the core, and what it does with that, in one mode after the other."""
        settle, length = plan.FLOOD_SETTLE_S, self.told["flood_s"]
        with self.engine("flood", plan.FLOOD_PS, len(modes) * (settle + length)) as at_s:
            for mode in modes:
                self.scene.promise_cpu(self.t1, mode, True)
                self.until(at_s + settle)
                self.console.lines()
                at_s += settle + length
                row = self.measure(mode, plan.FLOOD_PS, at_s)
                said = [statistics(line)["tps"] for line in self.console.lines()
                        if STATISTICS.match(line)]
                self.told["flood"].append({**row, "tps": mean(said) if said else None})

    def table(self, mode):
        """One column of table 1."""
        with self.engine(mode, self.told["rate"], self.told["seconds"]) as at_s:
            self.scene.promise_cpu(self.t1, mode, True)
            self.until(at_s)
            row = self.measure(mode, self.told["rate"], at_s + self.told["seconds"])
        result = result_of(self.console.path) or {}
        self.told["table"].append({**row, "committed": result.get("committed"),
                                   "classes": result.get("classes", {})})


def neighbours(scene):
    """Part 3: t1 beside neighbours that compute, with what the mode promises and with a maximum
    only."""
    n, vm = scene.told[NEIGHBOURS], plan.shared_vm("t1", plan.TPCC_MEMORY_MIB)
    modes = (scene.mode, plan.MAX_ONLY)
    with scene.vms([vm], plan.cpu_host(n["core_share"]), shared_cores="1"):
        scene.start(vm)
        n["flood"], n["table"] = [], []
        with Neighbours(scene.lab, 0, n["count"],
                        vcpus_of(hostmem.qemu_pid(vm.uuid))[0]) as others:
            crowd = Crowd(scene, vm, others)
            crowd.flood(modes)
            for mode in modes:
                crowd.table(mode)


def add_result(scene, vm, result, names=("committed", "failed", "lost_updates")):
    """An engine of a VM that has several, at once or one after the other."""
    before = scene.results.get(vm.name, dict.fromkeys(names, 0))
    scene.results[vm.name] = None if result is None or before is None else {
        name: before[name] + result[name] for name in before}


def work_spans(begin, seconds, idle_s):
    """Work and idle time in turn."""
    count = round(seconds / (2 * idle_s))
    return [(begin + 2 * i * idle_s, begin + (2 * i + 1) * idle_s) for i in range(count)]


def overbooked(scene):
    """Part 4: eight tenants whose promises are twice what the disk can do. They are NBD clients,
    not VMs: what counts is when requests come and go, which a guest would only blur."""
    o = scene.told[OVERBOOKED]
    names = [f"tenant{i}" for i in range(o["tenants"])]
    with scene.volumes(names):
        for name in names:
            scene.promise(name, o["iops"], o["iops"])
        begin = scene.found.elapsed() + 1.0
        o["begin_s"], o["end_s"] = begin, begin + o["seconds"]
        loads = {}
        for name in names:
            spans = [(begin, o["end_s"])] if name != o["idler"] else \
                work_spans(begin, o["seconds"], o["idle_s"])
            loads[name] = TracedLoad(scene.server, name, plan.TENANT_DEPTH, spans,
                                     scene.found.elapsed)
        scene.found.step("loads", "", f"{len(names)} tenants work, {o['idler']} half of the time")
        for load in loads.values():
            load.start()
        scene.watch(o["end_s"] + 2.0 - scene.found.elapsed())
        for name, load in loads.items():
            load.join(30)
            if load.error:
                raise SetupError(f"the load of {name}: {load.error}")
        scene.watch(2.0)     # the meter's last interval ends
        o["looks"] = scene.looks()
        o["reckoned"] = {
            name: [astuple(look) for look in promises.reckon(
                load.trace, [look[0] for look in o["looks"][name]])]
            for name, load in loads.items()}


PLAYS = {MEET: meet, GREEDY: greedy, NEIGHBOURS: neighbours, OVERBOOKED: overbooked}


def play(a, p, accelerator):
    scene = Scene(a, p, accelerator)
    for part in scene.told["parts"]:
        PLAYS[part](scene)
    sliced_run.record(a, p, accelerator, scene.found, scene.results, scene.versions,
                      reserve=scene.told, engine=plan.MEET_SERVER)
