# SPDX-License-Identifier: GPL-2.0-or-later
"""What happens in `failover`: a database in memory goes to another node twice, once with its
records copied ahead, once by a node that opens what the killed one has on disk.

Nodes are processes on the machine itself, with volumes in files. What they read of the disk is held
to a rate, as of storage in a network.
"""
import os
import shutil
import subprocess
import tempfile
import time
from contextlib import ExitStack

from harness.lab import oltp_server, versions
from harness.lab.process import SetupError
from harness.lab.slow_disk import SlowDisk, device_of
from harness.stage import sliced_run

from . import plan
from .plan import COLD, WARM

LOAD_S = 120            # longest until rows are loaded and requests arrive
LONGEST_S = 600         # of a run of oltp-load: it is ended before
LOOK_S = 0.1
TRY_S = 0.002           # between two tries to get a first answer
KEYS = ("--keys", "200000")
# Of nodes that a database is made in: so that little of it is in the log only.
EAGER = ("--checkpoint-mib-s", "1000")


def make_volume(path, mib):
    subprocess.run(["fallocate", "-l", f"{mib}M", path], check=True)


def first_answer_ms(node, since, request):
    """From then until a node that was launched has run a transaction, which reads a record."""
    end_at = time.monotonic() + oltp_server.START_S
    while time.monotonic() < end_at:
        try:
            with node.connect() as s:
                s.settimeout(oltp_server.ANSWER_S)
                s.sendall(request)
                answer = s.makefile("rb").readline()
                if answer.startswith(b"$") and answer != b"$-1\r\n":
                    return round(1000 * (time.monotonic() - since), 1)
        except OSError:
            pass
        if node.process.poll() is not None:
            break
        time.sleep(TRY_S)
    raise SetupError(f"oltp-server {node.name} does not serve, see {node.log_path}")


class Rig:
    def __init__(self, a, p, folder, found):
        self.a, self.folder, self.found = a, folder, found
        self.cpus, self.client_cpus = p.more["cpus"], set(p.more["client_cpus"])
        self.log_dir = os.path.join(a.out, "log")

    def node(self, name, which, volume, *options):
        return oltp_server.Node(name, os.path.join(self.folder, name), self.log_dir,
                                self.cpus[which], *KEYS, *options,
                                volume=os.path.join(self.folder, volume))

    def volume(self, name, mib):
        make_volume(os.path.join(self.folder, name), mib)
        return name

    def load(self, name, nodes, *options):
        return oltp_server.Load(name, self.log_dir, self.client_cpus, [n.address for n in nodes],
                                "--seed", str(self.a.seed), *options)


class Case:
    """One failover. name: what it is to be; how: how the database really goes."""

    def __init__(self, rig, name, how, disk, stack):
        self.rig, self.name, self.how, self.disk, self.stack = rig, name, how, disk, stack
        self.scale, self.found = rig.a.time_scale, rig.found
        volume = rig.volume(f"{name}-volume", plan.VOLUME_MIB)
        self.source = stack.enter_context(rig.node(
            f"{name}-source", 0, volume, "--volume-format", "--relocatable", *EAGER,
            "--checkpoint-mib", str(plan.CHECKPOINT_MIB)))
        disk.add(self.source.pid)
        self.link = f"unix:{rig.folder}/{name}-link"
        if how == WARM:
            self.target = stack.enter_context(rig.node(
                f"{name}-target", 1, rig.volume(f"{name}-target-volume", plan.VOLUME_MIB),
                "--volume-format", "--relocate-listen", self.link))
            disk.add(self.target.pid)
        else:
            self.target = rig.node(
                f"{name}-target", 1, volume, "--relocatable", "--recover", "--lazy-recovery",
                "--cold-dir", os.path.join(rig.folder, f"{name}-target", "cold"))
        self.load = rig.load(
            f"{name}-load", (self.source, self.target), "-c", str(plan.CONNECTIONS), "--rate",
            str(plan.RATE), "--workload", "tpcc", "--warehouses", str(plan.WAREHOUSES), "--mix",
            plan.MIX, "-s", str(LONGEST_S))
        stack.callback(self.load.kill)
        self.load.start()

    def play(self):
        """For run.json."""
        self.load.wait_for(2.0, LOAD_S * self.scale)
        steady_s = self.found.elapsed()
        time.sleep(plan.STEADY_S * self.scale)
        order_s = self.found.elapsed()
        told = self.copy() if self.how == WARM else self.crash()
        time.sleep(plan.TAIL_S[self.name if self.how == WARM else COLD] * self.scale)
        end_s = self.found.elapsed()
        summary = self.load.finish()
        late = self.load.begun_at - self.found.begun
        return {"name": self.name, "how": self.how, "steady_s": round(steady_s, 3),
                "order_s": round(order_s, 3), "end_s": round(end_s, 3), "summary": summary,
                "lost": lost_of(summary),
                "load": [{"t_s": round(row["t_s"] + late, 3), "seconds": row["seconds"],
                          "failures": row["failures"],
                          **{name: row["kinds"][plan.DELIVERY][name]
                             for name in ("done", "mean_us", "p99_us")}}
                         for row in self.load.rows], **told}

    def copy(self):
        self.found.step("failover", self.name, "records go ahead, then all clients")
        self.source.relocate(self.link, self.target.address, plan.ORDER)
        end_at = time.monotonic() + plan.PATIENCE_S * self.scale
        while time.monotonic() < end_at:
            status = self.source.status()
            if status["stage"] == "over":
                break
            time.sleep(LOOK_S)
        return {"is_over": status["stage"] == "over", "copied": status["copied"],
                "gone_s": round(self.found.elapsed(), 3), "first_answer_ms": None}

    def crash(self):
        self.found.step("failover", self.name, "the node is killed, another one opens its volume")
        self.source.process.kill()
        self.source.process.wait()
        begun = time.monotonic()
        self.target.launch()
        self.stack.callback(self.target.__exit__)
        self.disk.add(self.target.pid)
        first_ms = first_answer_ms(self.target, begun, b"HGET tpcc:w:1 a\r\n")
        return {"is_over": True, "copied": None, "gone_s": round(self.found.elapsed(), 3),
                "first_answer_ms": first_ms}


def open_lazily(rig):
    """A database of 1 GiB on a disk that is not held back."""
    rig.found.step("lazy", "", "a database of 1 GiB is made, and opened again")
    volume = rig.volume("lazy-volume", plan.LAZY_VOLUME_MIB)
    rows = ("--rows", str(plan.LAZY_ROWS), "--value-bytes", str(plan.LAZY_VALUE_BYTES))
    with rig.node("lazy-made", 0, volume, "--volume-format", "--relocatable",
                  *EAGER) as node:
        run_load(rig.load("lazy-load", (node,), *rows, "-s", "0"))
    with rig.node("lazy-checkpoint", 0, volume, "--relocatable", "--recover", *EAGER,
                  "--checkpoint-mib", str(plan.LAZY_CHECKPOINT_MIB)) as node:
        load = oltp_server.Load("lazy-writes", rig.log_dir, rig.client_cpus, [node.address], *rows,
                                "--mix", "set=100", "--rate", str(plan.LAZY_WRITE_RATE), "-s",
                                str(plan.LAZY_WRITE_S), loads=False)
        run_load(load)
        time.sleep(plan.LAZY_SETTLE_S * rig.a.time_scale)
    node = rig.node("lazy", 0, volume, "--relocatable", "--recover", "--lazy-recovery",
                    "--cold-dir", os.path.join(rig.folder, "lazy", "cold"))
    begun = time.monotonic()
    node.launch()
    try:
        return {"bytes": plan.LAZY_ROWS * plan.LAZY_VALUE_BYTES,
                "first_answer_ms": first_answer_ms(node, begun, b"GET row:0\r\n")}
    finally:
        node.__exit__()


def lost_of(summary):
    """Acknowledged work that the tables lack at the end, and rows that do not fit together."""
    tables = summary["tables"]
    return tables["violations"] + sum(tables[name]["lost"]
                                      for name in ("orders", "payments", "deliveries"))


def run_load(load):
    load.start()
    try:
        rc = load.process.wait(LOAD_S)
    except subprocess.TimeoutExpired:
        rc = None
    finally:
        load.kill()
    if rc != 0:
        raise SetupError(f"oltp-load failed, see {load.log_path}")


def play(a, p, accelerator):
    os.makedirs(os.path.join(a.out, "log"), exist_ok=True)
    # Beside the results, which are on a disk, and not in memory as other temporary files may be.
    folder = tempfile.mkdtemp(prefix="volumes-", dir=a.out)
    found, told, results = sliced_run.Slices(), [], {}
    rig = Rig(a, p, folder, found)
    try:
        for name, how in p.more["cases"]:
            with SlowDisk(device_of(folder), plan.READ_MIB_S) as disk, ExitStack() as stack:
                told.append(Case(rig, name, how, disk, stack).play())
            summary = told[-1]["summary"]
            results[name] = {"committed": summary["all"]["done"], "aborted": 0,
                             "failed": summary["failures"],
                             "lost_updates": told[-1]["lost"]}
        lazy = open_lazily(rig)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    sliced_run.record(a, p, accelerator, found, results, versions.of_programs(),
                      failover={"cases": told, "lazy": lazy, "read_mib_s": plan.READ_MIB_S,
                                "warehouses": plan.WAREHOUSES})
