# SPDX-License-Identifier: GPL-2.0-or-later
"""What happens in `migrate`: case by case, a database moves from one server to another.

The servers are processes on the machine itself, or with --guests in a VM each. Each node has a CPU
of its own, and on a machine of four CPUs or more clients have others; logs and disks are files in
memory, so that no other program's use of a disk has an effect.
"""
import os
import shutil
import threading
import time
from contextlib import ExitStack, contextmanager

from harness.lab import domain, oltp_guest, versions
from harness.lab.lab import MEMORY_DIR, Lab
from harness.lab.oltp_server import Load, Node, Observer
from harness.measure import process_meter
from harness.stage import sliced_run

from . import plan
from .plan import TENANT_CONNECTIONS, TENANT_RATE, TENANT_ROWS, TENANT_WAREHOUSES
from .verdict import lost_of

LOOK_S = 0.25
LOAD_S = 180            # longest until rows are loaded and requests arrive
LONGEST_S = 600         # of a run of oltp-load: it is ended before
VOLUME_BYTES = 2 << 30  # sparse
PEERS = {"source": "target", "target": "source"}
PREFIX = "ebb-migrate-"     # of folders, which end with the process that uses them


class Watch:
    """Looks at both nodes, and at the CPU time of all processes, some times a second. Use as a
    context; looks: for run.json."""

    def __init__(self, nodes, groups, elapsed):
        """groups: (CPUs, processes that stay on them), all that take part; CPUs None: any."""
        self.elapsed, self.over = elapsed, threading.Event()
        self.node_pids = {name: node.pid for name, node in nodes.items()}
        self.meters = [process_meter.Meter(pids, cpus) for cpus, pids in groups]
        self.observers = {name: Observer(node.connect) for name, node in nodes.items()}
        self.looks = {"cpu": [], **{name: [] for name in nodes}}
        # A thread for each: a target answers nothing before its source has come.
        self.threads = [threading.Thread(target=self.repeat, args=(name, look), daemon=True)
                        for name, look in [("cpu", self.look_at_cpu), *(
                            (name, lambda o=o: node_look(o.info()))
                            for name, o in self.observers.items())]]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stop()

    def repeat(self, name, look):
        while not self.over.is_set():
            told = look()
            if told is not None:
                self.looks[name].append({"t_s": round(self.elapsed(), 3), **told})
            self.over.wait(LOOK_S)

    def look_at_cpu(self):
        groups = [meter.look() for meter in self.meters]
        of_process = {pid: s for used in groups for pid, s in used.of_process.items()}
        return {"groups": [{"ran_s": round(used.ran_s, 4), "waited_s": round(used.waited_s, 4),
                            "machine_s": round(used.machine_s, 4)} for used in groups],
                **{name: round(of_process[pid], 4) for name, pid in self.node_pids.items()}}

    def stop(self):
        self.over.set()
        for thread in self.threads:
            thread.join()
        for observer in self.observers.values():
            observer.close()


def node_look(info):
    """The recorded part of a node's INFO; None: not known."""
    if info is None:
        return None
    return {name: int(info[told]) if told in info else None for name, told in (
        ("cached_bytes", "resident_bytes"), ("records", "resident_records"),
        ("cold_records", "cold_records"), ("owned", "relocation_units_owned"),
        ("sent_bytes", "relocation_link_sent_bytes"),
        ("received_bytes", "relocation_link_received_bytes"))}


class Host:
    """Where the servers run: this machine. Use as a context."""

    def __init__(self, a, p):
        self.a, self.log_dir = a, os.path.join(a.out, "log")
        self.cpus, self.client_cpus = p.more["cpus"], p.more["client_cpus"]
        self.folder = os.path.join(MEMORY_DIR, f"{PREFIX}{os.getpid()}")
        self.prefix = ()        # of commands that talk to the nodes
        self.versions = versions.of_programs()

    def __enter__(self):
        remove_abandoned()
        os.makedirs(self.folder)
        os.makedirs(self.log_dir, exist_ok=True)
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder, ignore_errors=True)

    @contextmanager
    def node(self, name, which, *options, memory_mib=0):
        """A server; which: of the two nodes."""
        folder, volume = os.path.join(self.folder, name), None
        if memory_mib:
            # The other node reads there what is on disk, so that it need not go over the link.
            volume = self.volume(name)
            with open(volume, "wb") as f:
                f.truncate(VOLUME_BYTES)
            options += ("--volume-format", "--fence-peer-volume", self.volume(PEERS[name]))
        try:
            with Node(name, folder, self.log_dir, self.cpus[which], *options,
                      memory_mib=memory_mib, volume=volume) as node:
                yield node
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            if volume:
                os.unlink(volume)

    def volume(self, name):
        return os.path.join(self.folder, f"{name}-volume")

    def link(self):
        """The address at which the target waits for the source."""
        return f"unix:{self.folder}/link"

    def groups(self, nodes, loads):
        """For Watch."""
        pids = [load.process.pid for load in loads]
        if set(self.client_cpus) & set(self.cpus):
            return [(self.cpus, [*(node.pid for node in nodes), *pids])]
        return [*(((cpu,), [node.pid for node in nodes if node.cpu == cpu]) for cpu in self.cpus),
                (self.client_cpus, pids)]


class Guests:
    """The same: two VMs in a lab with a network. oltp-load runs on this machine."""

    def __init__(self, a, p, accelerator):
        self.a, self.log_dir = a, os.path.join(a.out, "log")
        self.cpus, self.client_cpus = p.more["cpus"], p.more["client_cpus"]
        self.accelerator, self.stack = accelerator, ExitStack()
        self.guests, self.versions, self.prefix = [], {}, ()

    def __enter__(self):
        with ExitStack() as stack:
            lab = stack.enter_context(Lab("", "", self.log_dir, network=plan.NETWORK))
            boot = lab.boot(self.accelerator)
            stack.callback(self.keep_logs, lab, boot)
            self.prefix, self.versions = lab.in_network(), versions.of_lab(lab)
            self.guests = [oltp_guest.Guest(lab, boot, vm, cpu)
                           for vm, cpu in zip(plan.guests(), self.cpus)]
            for guest in self.guests:
                guest.wait()
            self.stack = stack.pop_all()
        return self

    def __exit__(self, *_):
        self.stack.close()

    def keep_logs(self, lab, boot):
        for path in lab.libvirt_logs() + [domain.console_path(boot, vm) for vm in plan.guests()]:
            if os.path.exists(path):
                shutil.copy(path, self.log_dir)

    def node(self, name, which, *options, memory_mib=0):
        return oltp_guest.Node(self.guests[which], name, self.log_dir, *options,
                               memory_mib=memory_mib)

    def link(self):
        return f"{self.guests[1].address}:{oltp_guest.LINK_PORT}"

    def groups(self, nodes, loads):
        return [(None, [*(node.pid for node in nodes), *(load.process.pid for load in loads)])]


def remove_abandoned():
    """What runs have left that were killed."""
    for name in os.listdir(MEMORY_DIR):
        pid = name.removeprefix(PREFIX)
        if pid != name and pid.isdigit() and not os.path.exists(f"/proc/{pid}"):
            shutil.rmtree(os.path.join(MEMORY_DIR, name), ignore_errors=True)


class Move:
    """One case, from the start of its servers to their end."""

    def __init__(self, host, case, found, stack):
        self.host, self.case, self.found, self.stack = host, case, found, stack
        self.scale = host.a.time_scale
        options = ["--keys", str(plan.keys(case.rows, case.warehouses)),
                   "--checkpoint-mib", "256"]
        self.nodes = {name: stack.enter_context(host.node(name, which, *more, *options,
                                                          memory_mib=case.memory_mib))
                      for name, which, more in (
                          ("source", 0, ["--relocatable", "--relocate-insecure"]),
                          # Guests have a network of their own.
                          ("target", 1, ["--relocate-listen", host.link(),
                                         "--relocate-insecure"]))}
        # The other tenants do the same kind of work.
        small = (TENANT_ROWS, TENANT_WAREHOUSES if case.warehouses else 0)
        self.others = [stack.enter_context(host.node(
            f"tenant{i + 1}", i % 2, "--keys", str(plan.keys(*small))))
            for i in range(case.tenants)]
        self.load = self.start_load("load", self.nodes.values(), case.connections, case.rate,
                                    plan.load_options(case.mix, case.rows, case.warehouses))
        self.other_loads = [self.start_load(
            f"load-{node.name}", [node], TENANT_CONNECTIONS, TENANT_RATE,
            plan.load_options(plan.READ_MOSTLY, *small)) for node in self.others]

    def start_load(self, name, nodes, connections, rate, options):
        load = Load(name, self.host.log_dir, set(self.host.client_cpus), [n.address for n in nodes],
                    "-c", str(connections), "--rate", str(rate), *options,
                    "--seed", str(self.host.a.seed), "-s", str(LONGEST_S),
                    prefix=self.host.prefix)
        self.stack.callback(load.kill)
        load.start()
        return load

    @property
    def loads(self):
        return [self.load, *self.other_loads]

    def play(self):
        """For run.json."""
        for load in self.loads:
            load.wait_for(1.0, LOAD_S * self.scale)
        watch = self.stack.enter_context(Watch(
            self.nodes, self.host.groups([*self.nodes.values(), *self.others], self.loads),
            self.found.elapsed))
        time.sleep(plan.WARM_S * self.scale)
        steady_s = self.found.elapsed()
        time.sleep(plan.STEADY_S * self.scale)
        order_s = self.found.elapsed()
        self.nodes["source"].relocate(self.host.link(), self.nodes["target"].address,
                                      plan.order_of(self.case))
        self.found.step("relocate", self.case.name, f"the database begins to move, "
                        f"{self.case.mode}")
        over_s = self.wait_until_over()
        time.sleep(plan.TAIL_S * self.scale)
        end_s = self.found.elapsed()
        status = {name: node.status() for name, node in self.nodes.items()}
        watch.stop()
        summaries = [load.finish() for load in self.loads]
        return {**plan.told(self.case), "steady_s": round(steady_s, 3),
                "order_s": round(order_s, 3), "over_s": over_s, "end_s": round(end_s, 3),
                "units": sum(status["target"]["units"].values()),
                "pauses": {name: told["pauses"] for name, told in status.items()},
                "taken_back": status["source"]["taken_back"],
                "looks": watch.looks, "load": self.rows(self.load), "summary": summaries[0],
                "others": [self.rows(load) for load in self.other_loads],
                "others_failed": sum(s["failures"] for s in summaries[1:])}

    def wait_until_over(self):
        """When all units were at the target, as the source knows it; None: not in time."""
        end_at = time.monotonic() + (plan.LIMIT_S + plan.PATIENCE_S) * self.scale
        while time.monotonic() < end_at:
            if self.nodes["source"].status()["stage"] == "over":
                return round(self.found.elapsed(), 3)
            time.sleep(LOOK_S)
        return None

    def rows(self, load):
        """Seconds of a load, by the scenario's clock."""
        late = load.begun_at - self.found.begun
        return [{"t_s": round(row["t_s"] + late, 3), "seconds": row["seconds"],
                 "done": row["all"]["done"], "mean_us": row["all"]["mean_us"],
                 "p99_us": row["all"]["p99_us"], "failures": row["failures"],
                 "moves": row["moves"], "nodes": [
                     {name: node[name] for name in ("connections", "done", "mean_us")}
                     for node in row["nodes"].values()]} for row in load.rows]


def play(a, p, accelerator):
    found, told, results = sliced_run.Slices(), [], {}
    with Guests(a, p, accelerator) if a.guests else Host(a, p) as host:
        for case in p.more["cases"]:
            found.step("start", case.name, f"table {case.table}, {case.mode}: two nodes, "
                       f"{plan.size_words(case.rows, case.warehouses)}, "
                       f"{case.rate} requests/s" +
                       (f", {case.tenants} other tenants" if case.tenants else ""))
            with ExitStack() as stack:
                told.append(Move(host, case, found, stack).play())
            results[case.name] = result_of(told[-1])
        sliced_run.record(a, p, accelerator, found, results, host.versions,
                          migrate={"cases": told, "cpus": len({*host.cpus, *host.client_cpus})})


def result_of(told):
    """What the clients of a case saw in all."""
    summary = told["summary"]
    return {"committed": summary["all"]["done"], "aborted": 0, "failed": summary["failures"],
            "lost_updates": lost_of(summary)}
