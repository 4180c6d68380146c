# SPDX-License-Identifier: GPL-2.0-or-later
"""What happens in `cluster`: four databases serve clients on three hosts. One gets more load and
moves to another host while it works; then a host is lost, and its database starts elsewhere."""
import os
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

PLACE_S, SERVE_S, MOVE_S, AGAIN_S, REJOIN_S, LOAD_S = 60, 150, 60, 60, 60, 120
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


class Watch(threading.Thread):
    """Looks at Pacemaker and at all agents; looks: for run.json."""

    def __init__(self, lab, elapsed):
        super().__init__(daemon=True)
        self.lab, self.elapsed = lab, elapsed
        self.over, self.looks, self.doubled = threading.Event(), [], []

    def run(self):
        suspects = set()
        while not self.over.is_set():
            state, agents = self.lab.state(), self.lab.grants()
            if state:
                self.looks.append({
                    "t_s": round(self.elapsed(), 3), "online": state.online,
                    "where": {vm: state.host_of(vm) for vm in state.vms},
                    "held": {vm["name"]: vm["cpus_held"] for vms in agents.values() for vm in vms
                             if vm["state"] == "running"},
                    "scores": state.scores})
            # Two agents answer at two moments, between which a VM may have moved.
            now = set(grants.doubled(agents))
            self.doubled += sorted(now & suspects)
            suspects = now
            self.over.wait(LOOK_S)


class Story:
    """The run, with its clock."""

    def __init__(self, a, lab, boot, vms, found, stack):
        self.a, self.lab, self.boot, self.found, self.stack = a, lab, boot, found, stack
        self.vms = {vm.name: vm for vm in vms}
        self.where, self.rates, self.moments = dict(plan.HOMES), dict(plan.RATES), {}
        self.published = {}
        self.watch = Watch(lab, found.elapsed)
        self.pings = {vm.name: Pings(lab, vm, found.elapsed) for vm in vms}

    def publish(self, leaves=()):
        """By hand, what a placer would say."""
        told = plan.scores(self.where, self.rates, leaves, self.a.ablate)
        for vm, scores in told.items():
            changed = {host: score for host, score in scores.items()
                       if self.published.get(vm, {}).get(host) != score}
            self.lab.set_scores(vm, changed)
        self.published = told

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
        for vm in where:
            self.where[vm] = state.host_of(vm)
        return True

    def begin(self):
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(os.path.join(folder, "log"))
            for vm in self.vms.values():
                self.lab.make_disks(self.boot, vm, folder)
        for vm in self.vms.values():
            self.lab.add_vm(self.boot, vm)
        self.publish()
        self.mark("placed", "", "four databases are placed on three hosts")
        self.lab.wait(lambda s: all(s.host_of(vm) for vm in self.vms), PLACE_S *
                      self.a.time_scale, "all VMs run")
        for thread in (self.watch, *self.pings.values()):
            self.stack.callback(thread.over.set)
            thread.start()
        end_at = time.monotonic() + SERVE_S * self.a.time_scale
        while any(p.last_s is None for p in self.pings.values()):
            if time.monotonic() > end_at:
                raise SetupError("not all VMs serve clients, see their consoles")
            time.sleep(0.1)
        self.loads = {name: self.start_load(vm) for name, vm in self.vms.items()}
        for load in self.loads.values():
            load.wait_for(1.0, LOAD_S * self.a.time_scale)

    def start_load(self, vm):
        grows = plan.STEADY_S * self.a.time_scale
        rate = str(plan.RATES[vm.name])
        schedule = ("--rate-schedule", f"0:{rate},{grows:g}:{plan.GROWN_RATE}") \
            if vm.name == plan.GROWS else ()
        load = Load(f"load-{vm.name}", os.path.join(self.a.out, "log"),
                    os.sched_getaffinity(0), [f"{vm.address.partition('/')[0]}:{plan.PORT}"],
                    "-c", str(plan.CONNECTIONS), "--rate", rate, *schedule, "--mix", plan.MIX,
                    "--rows", str(plan.ROWS), "--counters", "100", "--seed", str(self.a.seed),
                    "--wait-ms", str(WAIT_MS), "--answer-ms", str(ANSWER_MS),
                    "-s", str(LONGEST_S), prefix=self.lab.in_network())
        self.stack.callback(load.kill)
        load.start()
        return load

    def play(self):
        self.begin()
        self.mark("steady", "", "all serve clients")
        self.loads[plan.GROWS].wait_for(plan.STEADY_S * self.a.time_scale, LOAD_S)
        self.mark("grows", plan.GROWS, f"{plan.GROWS} gets {plan.GROWN_RATE} requests/s instead "
                                       f"of {plan.RATES[plan.GROWS]}")
        self.pause(plan.GROWN_S)
        self.rates[plan.GROWS] = plan.GROWN_RATE
        source = self.where[plan.GROWS]
        self.mark("order", plan.GROWS, f"{plan.GROWS} is to leave {source}")
        self.publish(leaves=(plan.GROWS,))
        if self.until({plan.GROWS: (source,)}, MOVE_S if not self.a.ablate else 10,
                      f"{plan.GROWS} leaves {source}"):
            self.mark("moved", plan.GROWS, f"{plan.GROWS} works on {self.where[plan.GROWS]}")
        self.publish()
        self.pause(plan.AFTER_MOVE_S)
        lost = [vm for vm, host in self.where.items() if host == plan.LOST]
        self.lab.crash(plan.LOST)       # returns when nothing of it runs any more
        self.mark("loss", plan.LOST, f"{plan.LOST} is lost, with {' and '.join(lost)}")
        if self.until({vm: (plan.LOST,) for vm in lost}, AGAIN_S if not self.a.ablate else 20,
                      f"{' and '.join(lost)} again"):
            self.mark("again", "", ", ".join(f"{vm} on {self.where[vm]}" for vm in lost))
        self.lab.wait(lambda s: set(s.online) == set(plan.HOSTS), REJOIN_S * self.a.time_scale,
                      f"{plan.LOST} is back")
        self.mark("end", plan.LOST, f"{plan.LOST} is back in the cluster")
        # Its scores have gone with it.
        for scores in self.published.values():
            scores.pop(plan.LOST, None)
        self.publish()
        self.wait_for_service(lost)
        self.pause(plan.AFTER_LOSS_S)
        summaries = {name: load.finish() for name, load in self.loads.items()}
        return self.told(lost, summaries)

    def wait_for_service(self, names):
        asked_s, end_at = self.found.elapsed(), time.monotonic() + SERVE_S * self.a.time_scale
        while any(self.pings[name].last_s < asked_s for name in names):
            if time.monotonic() > end_at:
                self.found.step("late", "", "not all VMs of the lost host serve again")
                return
            time.sleep(0.1)

    def told(self, lost, summaries):
        """For run.json."""
        for thread in (self.watch, *self.pings.values()):
            thread.over.set()
        for thread in (self.watch, *self.pings.values()):
            thread.join()
        return {"moments": self.moments, "lost": lost, "looks": self.watch.looks,
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
        lab.with_agents(p.host["spec"], p.policy)
        stack.enter_context(lab)
        story = Story(a, lab, lab.boot(accelerator), plan.vms(), found, stack)
        told = story.play()
        story.samples(told)
        seen = versions.of_programs()
    results = told.pop("results")
    sliced_run.record(a, p, accelerator, found, results, seen, cluster=told)
