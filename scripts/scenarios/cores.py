# SPDX-License-Identifier: GPL-2.0-or-later
"""What the cores of an emulated host were used for, in intervals: the CPU time of the threads in
the cgroup of each core, from the host's kernel, whatever the agent says."""
import csv
import os
from dataclasses import dataclass, field

from .schema import SchemaError

CORES = "cores.csv"
COLUMNS = ["t_s", "seconds", "core", "busy", "vms"]
MOUNTS = ("/sys/fs/cgroup/unified", "/sys/fs/cgroup", "/sys/fs/cgroup/cpu",
          "/sys/fs/cgroup/cpu,cpuacct")


@dataclass
class Row:
    """A core in an interval. Parts of what the core can do, so 1 is all of it."""
    t_s: float              # the interval's end
    seconds: float
    core: int
    busy: float
    vms: dict = field(default_factory=dict)     # VM: its part of busy


def active(row, least):
    """VMs that have computed there."""
    return [vm for vm, part in row.vms.items() if part >= least]


def is_hot(row, hot, least):
    """Hot and oversubscribed, as the paper counts: used so much, by two VMs or more."""
    return row.busy >= hot and len(active(row, least)) >= 2


def rows_of(t_s, seconds, share, before, after, where):
    """[Row] of an interval. before, after: {thread: CPU seconds}; where: {core: {thread: VM}} at
    its end. A thread that was not seen before counts from then on: it has just begun."""
    found = []
    for core in sorted(where):
        vms = {}
        for thread, vm in where[core].items():
            if thread in after:
                part = (after[thread] - before.get(thread, after[thread])) / (seconds * share)
                vms[vm] = vms.get(vm, 0.0) + max(0.0, part)
        found.append(Row(round(t_s, 3), round(seconds, 3), core, sum(vms.values()), vms))
    return found


def pairs(places):
    """Groups of VMs that are on the same cores and no other, largest first. places: {core: VMs}."""
    cores = {}
    for core, vms in places.items():
        for vm in vms:
            cores.setdefault(vm, set()).add(core)
    groups = {}
    for vm in sorted(cores):
        groups.setdefault(frozenset(cores[vm]), []).append(vm)
    return sorted((g for g in groups.values() if len(g) > 1), key=lambda g: (-len(g), g))


def shared(places, vms):
    """On how many cores two of these VMs or more are."""
    return sum(len(set(here) & set(vms)) >= 2 for here in places.values())


def write(path, rows):
    with open(path, "w", newline="", encoding="utf-8") as f:
        w = csv.writer(f, lineterminator="\n")
        w.writerow(COLUMNS)
        for r in rows:
            vms = "/".join(f"{vm}={part:.4f}" for vm, part in r.vms.items())
            w.writerow([f"{r.t_s:.3f}", f"{r.seconds:.3f}", r.core, f"{r.busy:.4f}", vms])


def read(path):
    with open(path, newline="", encoding="utf-8") as f:
        lines = csv.reader(f)
        if next(lines, None) != COLUMNS:
            raise SchemaError(f"{path}: the first line must be {','.join(COLUMNS)}")
        try:
            return [Row(float(t), float(seconds), int(core), float(busy),
                        {k: float(v) for k, v in (p.split("=") for p in vms.split("/") if p)})
                    for t, seconds, core, busy, vms in lines]
        except ValueError as e:
            raise SchemaError(f"{path}:{lines.line_num}: {e}") from None


# ---- of this machine ----

def group_path(group):
    """The folder of an emulated host in the cgroup hierarchy that limits CPU time."""
    return next((os.path.join(m, group) for m in MOUNTS
                 if os.path.isdir(os.path.join(m, group, "c0"))), None)


def _numbers(path):
    try:
        with open(path, encoding="ascii") as f:
            return [int(x) for x in f.read().split()]
    except OSError:
        return []


def threads_on(path, core):
    folder = os.path.join(path, f"c{core}")
    return _numbers(os.path.join(folder, "cgroup.threads")) or \
        _numbers(os.path.join(folder, "tasks"))


def cpu_seconds(thread):
    """CPU time of a thread so far; None when it is gone."""
    try:
        with open(f"/proc/{thread}/schedstat", encoding="ascii") as f:
            return int(f.read().split()[0]) / 1e9
    except (OSError, IndexError, ValueError):
        return None


def threads_of(pid):
    try:
        return [int(x) for x in os.listdir(f"/proc/{pid}/task")]
    except OSError:
        return []


class Meter:
    """Reads all cores; look() as often as wanted, a row of each core comes once in an interval."""

    def __init__(self, group, num_cores, share, interval_s, pid_of):
        """pid_of: {VM: function that returns the process of its QEMU, or None}."""
        self.group, self.num_cores, self.share = group, num_cores, share
        self.interval_s, self.pid_of = interval_s, pid_of
        self.rows, self.owner, self.pids = [], {}, {}
        self.begun, self.before = None, {}

    def places(self):
        """{core: {thread: VM}} now, vCPUs only."""
        path = group_path(self.group)
        if path is None:
            return {}
        found = {}
        for core in range(self.num_cores):
            found[core] = {t: self._vm_of(t) for t in threads_on(path, core)}
            found[core] = {t: vm for t, vm in found[core].items() if vm}
        return found

    def _vm_of(self, thread):
        if thread not in self.owner:
            for vm, pid_of in self.pid_of.items():
                if vm not in self.pids or not os.path.exists(f"/proc/{self.pids[vm]}"):
                    self.pids[vm] = pid_of()
                if self.pids[vm]:
                    self.owner.update(dict.fromkeys(threads_of(self.pids[vm]), vm))
        return self.owner.get(thread)

    def look(self, now):
        if self.begun is not None and now - self.begun < self.interval_s:
            return
        where = self.places()
        after = {t: cpu_seconds(t) for here in where.values() for t in here}
        after = {t: s for t, s in after.items() if s is not None}
        if self.begun is not None and where:
            self.rows += rows_of(now, now - self.begun, self.share, self.before, after, where)
        self.begun, self.before = now, after
