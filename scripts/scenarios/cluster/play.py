# SPDX-License-Identifier: GPL-2.0-or-later
"""What happens in `cluster`: four databases serve clients on three hosts, where placers put them.
Two on one host get more load, and one of them moves to another host while it works; then that host
is lost, and its databases start elsewhere."""
import os
import re
import shutil
import tempfile
import threading
import time
from contextlib import ExitStack

from harness.judge import grants
from harness.lab import cluster, versions
from harness.lab.oltp_server import Load
from harness.lab.process import SetupError
from harness.record.schema import Sample
from harness.stage import sliced_run

from . import plan

PLACE_S, SERVE_S, ORDER_S, MOVE_S, AGAIN_S, REJOIN_S, LOAD_S = 60, 150, 90, 60, 60, 60, 120
SCORES_S, ABLATED_S = 5.0, 60.0
LOOK_S, PING_S, ANSWER_S = 0.3, 0.04, 3.0
GAP_S = 0.1             # longer times without an answer are recorded
LONGEST_S = 600         # of a run of oltp-load: it is ended before
WAIT_MS, ANSWER_MS = 20000, 5000    # a client tries again for so long


class Pings(threading.Thread):
    """A client of one VM that asks all the time; gaps: [(begin_s, end_s)] without an answer."""

    def __init__(self, lab, vm, elapsed):
        super().__init__(daemon=True)
        self.lab, self.address, self.elapsed = lab, (vm.address.partition("/")[0], plan.PORT), \
            elapsed
        self.over, self.last_s, self.gaps = threading.Event(), None, []

    def run(self):
        while not self.over.is_set():
            try:
                with self.lab.connect(self.address) as s:
                    s.settimeout(ANSWER_S)
                    while not self.over.is_set():
                        s.sendall(b"PING\r\n")
                        if not s.recv(16):
                            break
                        self.answered()
                        self.over.wait(PING_S)
            except OSError:
                self.over.wait(PING_S)

    def answered(self):
        now_s = round(self.elapsed(), 3)
        if self.last_s is not None and now_s - self.last_s > GAP_S:
            self.gaps.append((self.last_s, now_s))
        self.last_s = now_s


SAID = re.compile(r'event=score vm=(\S+) value=(-?\d+) reason="((?:[^"\\]|\\.)*)"')


class Watch(threading.Thread):
    """Looks at Pacemaker, at all agents and at what placers say; looks, words: for run.json."""

    def __init__(self, lab, elapsed):
        super().__init__(daemon=True)
        self.lab, self.elapsed = lab, elapsed
        self.over, self.looks, self.doubled = threading.Event(), [], []
        self.words, self.read = [], dict.fromkeys(plan.HOSTS, 0)

    def run(self):
        suspects = set()
        while not self.over.is_set():
            state, now_s = self.lab.state(), round(self.elapsed(), 3)
            # Those of a host that boots may take long to be asked.
            agents = self.lab.grants()
            if state:
                self.looks.append({
                    "t_s": now_s, "online": state.online,
                    "where": {vm: state.host_of(vm) for vm in state.vms},
                    "held": {vm["name"]: vm["cpus_held"] for vms in agents.values() for vm in vms
                             if vm["state"] == "running"},
                    "scores": state.scores})
            for host in plan.HOSTS:
                self.listen(host)
            # Two agents answer at two moments, between which a VM may have moved.
            now = set(grants.doubled(agents))
            self.doubled += sorted(now & suspects)
            suspects = now
            self.over.wait(LOOK_S)

    def listen(self, host):
        """Why its placer has set scores since the last look."""
        try:
            with open(os.path.join(self.lab.dir, host, "log", "boot.log"), "rb") as f:
                f.seek(self.read[host])
                lines = f.read()
        except OSError:
            return
        lines = lines[:lines.rfind(b"\n") + 1]
        self.read[host] += len(lines)
        text = lines.decode(errors="replace")
        self.words += [{"t_s": round(self.elapsed(), 3), "host": host, "vm": vm,
                        "score": int(score), "why": why}
                       for vm, score, why in SAID.findall(text)]


class Story:
    """The run, with its clock."""

    def __init__(self, a, lab, boot, vms, found, stack):
        self.a, self.lab, self.boot, self.found, self.stack = a, lab, boot, found, stack
        self.vms = {vm.name: vm for vm in vms}
        self.where, self.rates, self.moments = {}, {}, {}
        self.grown, self.lost, self.lost_host = [], [], None
        self.watch = Watch(lab, found.elapsed)
        self.pings = {vm.name: Pings(lab, vm, found.elapsed) for vm in vms}

    def mark(self, name, who, text):
        self.found.step(name, who, text)
        self.moments[name] = round(self.found.elapsed(), 3)

    def pause(self, seconds):
        time.sleep(seconds * self.a.time_scale)

    def until(self, where, patience_s, what):
        """Until VMs are where they are to be, and what Pacemaker knows then is known here. False:
        not in time, which is for the verdict."""
        try:
            state = self.lab.wait(lambda s: all(s.host_of(vm) not in (None, *hosts)
                                                for vm, hosts in where.items()),
                                  patience_s * self.a.time_scale, what)
        except SetupError as e:
            self.found.step("late", "", str(e))
            return False
        self.look(state)
        return True

    def look(self, state):
        self.where.update({vm: state.host_of(vm) for vm in self.vms if state.host_of(vm)})

    def place(self):
        """VMs are added, and start when each host has a score for each of them."""
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(os.path.join(folder, "log"))
            for vm in self.vms.values():
                self.lab.make_disks(self.boot, vm, folder)
        for vm in self.vms.values():
            self.lab.add_vm(self.boot, vm, **{"ebb-class": plan.CLASS, "target-role": "Stopped"})
        if self.a.ablate:
            for vm in self.vms:
                self.lab.set_scores(vm, dict.fromkeys(plan.HOSTS, plan.ALIKE))
        self.stack.callback(self.watch.over.set)
        self.watch.start()
        self.lab.wait(lambda s: all(set(s.scores.get(vm, ())) == set(plan.HOSTS)
                                    for vm in self.vms), PLACE_S * self.a.time_scale,
                      "every host has a score for every VM")
        # Scores depend on each other: those of the first VM are settled first.
        self.pause(SCORES_S)
        self.mark("placed", "", "three hosts have a score for each of four databases")
        for vm in self.vms:
            self.lab.start_vm(vm)
        self.look(self.lab.wait(lambda s: all(s.host_of(vm) for vm in self.vms),
                                PLACE_S * self.a.time_scale, "all VMs run"))

    def begin(self):
        self.place()
        for thread in self.pings.values():
            self.stack.callback(thread.over.set)
            thread.start()
        end_at = time.monotonic() + SERVE_S * self.a.time_scale
        while any(p.last_s is None for p in self.pings.values()):
            if time.monotonic() > end_at:
                raise SetupError("not all VMs serve clients, see their consoles")
            time.sleep(0.1)
        together = max((sorted(vm for vm in self.vms if self.where[vm] == host)
                        for host in plan.HOSTS), key=len)
        if len(together) < 2:
            raise SetupError("no two of four VMs share one of three hosts")
        self.grown = together[:len(plan.GROWN)]
        self.pause(plan.REST_S)
        core = self.measure()
        self.rates = {vm: (plan.STEADY * core, plan.GROWN[self.grown.index(vm)] * core
                           if vm in self.grown else None) for vm in self.vms}
        self.loads = {name: self.start_load(vm, *self.rates[name])
                      for name, vm in self.vms.items()}
        for load in self.loads.values():
            load.wait_for(1.0, LOAD_S * self.a.time_scale)

    def measure(self):
        """Requests per second that the first one serves on a core while the other one has all it
        can use, too: two cores that are busy are slower than one."""
        loads = [self.load(f"measure-{name}", self.vms[name], plan.MEASURED_RATE,
                           plan.MEASURED_MIX) for name in self.grown]
        for load in loads:
            load.wait_for(1.0, LOAD_S * self.a.time_scale)
        self.pause(plan.MEASURE_S)
        for load in loads:
            load.finish()
        rows = [row for row in loads[0].rows if row["seconds"] > 0.5][1:]
        served = sum(row["all"]["done"] for row in rows) / sum(row["seconds"] for row in rows)
        name = self.grown[0]
        self.mark("measured", name, f"{name} serves {served:.0f} requests/s on its core")
        return served

    def load(self, name, vm, rate, mix, *more):
        load = Load(f"load-{name}", os.path.join(self.a.out, "log"),
                    os.sched_getaffinity(0), [f"{vm.address.partition('/')[0]}:{plan.PORT}"],
                    "-c", str(plan.CONNECTIONS), "--rate", f"{rate:g}", "--mix", mix,
                    "--rows", str(plan.ROWS), "--counters", "100", "--seed", str(self.a.seed),
                    "--answer-ms", str(ANSWER_MS), "-s", str(LONGEST_S), "--load", *more,
                    prefix=self.lab.in_network(), loads=False)
        self.stack.callback(load.kill)
        load.start()
        return load

    def start_load(self, vm, rate, grown):
        schedule = ("--rate-schedule", f"0:{rate:g},{plan.STEADY_S * self.a.time_scale:g}:"
                                       f"{grown:g}") if grown else ()
        return self.load(vm.name, vm, rate, plan.MIX, "--verify", "--wait-ms", str(WAIT_MS),
                         *schedule)

    def play(self):
        self.begin()
        self.mark("steady", "", "all serve clients")
        self.loads[self.grown[0]].wait_for(plan.STEADY_S * self.a.time_scale, LOAD_S)
        home = self.where[self.grown[0]]
        self.look(self.lab.wait(lambda s: True, MOVE_S, "Pacemaker answers"))
        if any(self.where[vm] != home for vm in self.grown):
            raise SetupError(f"{home} was hot before the load of its VMs grew, and one has left")
        self.mark("grows", "", f"the load of {' and '.join(self.grown)} on {home} grows: " +
                  ", ".join(f"{vm} {self.rates[vm][1]:.0f} requests/s" for vm in self.grown))
        self.move(home)
        self.pause(plan.AFTER_MOVE_S)
        self.lose()
        self.pause(plan.AFTER_LOSS_S)
        summaries = {name: load.finish() for name, load in self.loads.items()}
        return self.told(summaries)

    def move(self, home):
        """Until one of the VMs that share a hot host has left it."""
        def leaving(state):
            return [vm for vm in self.grown if state.scores[vm].get(home) == 0 or
                    state.host_of(vm) not in (None, home)]
        try:
            state = self.lab.wait(leaving, (ORDER_S if not self.a.ablate else ABLATED_S) *
                                  self.a.time_scale, f"a VM is to leave {home}")
        except SetupError as e:
            self.found.step("late", "", str(e))
            self.lost_host = next(host for host in self.where.values() if host != home)
            return
        vm = leaving(state)[0]
        self.mark("order", vm, f"{vm} is to leave {home}: {home} is hot")
        if self.until({vm: (home,)}, MOVE_S, f"{vm} leaves {home}"):
            self.mark("moved", vm, f"{vm} works on {self.where[vm]}")
        self.lost_host = self.where[vm]

    def lose(self):
        """The host to which a VM has moved, or another one with a VM, is lost and comes back."""
        self.look(self.lab.wait(lambda s: True, MOVE_S, "Pacemaker answers"))
        lost = [vm for vm, host in self.where.items() if host == self.lost_host]
        self.lab.crash(self.lost_host)      # returns when nothing of it runs any more
        self.mark("loss", self.lost_host, f"{self.lost_host} is lost, with {' and '.join(lost)}")
        self.lost = lost
        if self.until({vm: (self.lost_host,) for vm in lost}, AGAIN_S,
                      f"{' and '.join(lost)} again"):
            self.mark("again", "", ", ".join(f"{vm} on {self.where[vm]}" for vm in lost))
        self.lab.wait(lambda s: set(s.online) == set(plan.HOSTS), REJOIN_S * self.a.time_scale,
                      f"{self.lost_host} is back")
        self.mark("end", self.lost_host, f"{self.lost_host} is back in the cluster")
        self.wait_for_service(lost)

    def wait_for_service(self, names):
        asked_s, end_at = self.found.elapsed(), time.monotonic() + SERVE_S * self.a.time_scale
        while any(self.pings[name].last_s < asked_s for name in names):
            if time.monotonic() > end_at:
                self.found.step("late", "", "not all VMs of the lost host serve again")
                return
            time.sleep(0.1)

    def told(self, summaries):
        """For run.json."""
        for thread in (self.watch, *self.pings.values()):
            thread.over.set()
        for thread in (self.watch, *self.pings.values()):
            thread.join()
        return {"moments": self.moments, "grown": self.grown, "lost_host": self.lost_host,
                "lost": self.lost, "looks": self.watch.looks, "words": self.watch.words,
                "doubled": self.watch.doubled,
                "gaps": {name: p.gaps for name, p in self.pings.items()},
                "boots": {name: self.boots(name) for name in self.vms},
                "loads": {name: self.rows(load) for name, load in self.loads.items()},
                "counters": {name: s["counters"] for name, s in summaries.items()},
                "results": {name: {"committed": s["all"]["done"], "aborted": 0,
                                   "failed": s["failures"],
                                   "lost_updates": s["counters"]["lost"]}
                            for name, s in summaries.items()}}

    def boots(self, name):
        """How often its guest has started, as its console says."""
        with open(os.path.join(self.lab.shared, name + ".console"), encoding="utf-8",
                  errors="replace") as f:
            return f.read().count("ebb-init: ready")

    def rows(self, load):
        """Seconds of a load, by the scenario's clock."""
        late = load.begun_at - self.found.begun
        return [{"t_s": round(row["t_s"] + late, 3), "seconds": row["seconds"],
                 "done": row["all"]["done"], "p50_us": round(row["all"]["p50_us"]),
                 "p99_us": round(row["all"]["p99_us"]), "failures": row["failures"],
                 "repeated": row["repeated"]} for row in load.rows]

    def samples(self, told):
        """A row for each second of each load, with where the VM was."""
        for name, rows in told["loads"].items():
            for row in rows:
                look = last_look(told["looks"], row["t_s"])
                self.found.samples.append(Sample(
                    row["t_s"], name, look["held"].get(name, 0) if look else 0, plan.CORES, 0, 0,
                    row["done"] / row["seconds"] if row["seconds"] else None, None,
                    row["p50_us"], row["p99_us"],
                    variant=(look["where"].get(name) or "") if look else ""))
        self.found.samples.sort(key=lambda s: (s.t_s, s.vm))


def last_look(looks, t_s):
    return next((look for look in reversed(looks) if look["t_s"] <= t_s), None)


def play(a, p, accelerator):
    log_dir = os.path.join(a.out, "log")
    shutil.rmtree(log_dir, ignore_errors=True)
    os.makedirs(log_dir)
    found = sliced_run.Slices()
    with ExitStack() as stack:
        lab = cluster.Cluster(log_dir=log_dir)
        lab.with_agents(p.host["spec"], p.policy, **plan.AGENT)
        if not a.ablate:
            lab.with_placers({plan.CLASS: plan.traces()}, record="no")
        stack.enter_context(lab)
        story = Story(a, lab, lab.boot(accelerator), plan.vms(), found, stack)
        told = story.play()
        story.samples(told)
        seen = versions.of_programs()
    results = told.pop("results")
    sliced_run.record(a, p, accelerator, found, results, seen, cluster=told)
