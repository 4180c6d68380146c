# SPDX-License-Identifier: GPL-2.0-or-later
"""The CPU time of the threads in the cgroup of each core of an emulated host, from the host's
kernel, whatever the agent says. Counted by VM (judge/delivery.py), and in intervals by core
(record/cores.py)."""
import os

from harness.judge import delivery
from harness.lab import hostmem
from harness.record.cores import Row

WINDOW_S = 1            # of an interval
MOUNTS = ("/sys/fs/cgroup/unified", "/sys/fs/cgroup", "/sys/fs/cgroup/cpu",
          "/sys/fs/cgroup/cpu,cpuacct")


def used_of(before, after, where):
    """{core: {thread: (seconds that it ran, seconds that it waited)}} of an interval.

    before, after: {thread: the same since it began}; where: {core: {thread: VM}} at its end. A
    thread that was not seen before counts from then on: it has just begun.
    """
    return {core: {t: tuple(max(0.0, b - a) for a, b in zip(before.get(t, after[t]), after[t]))
                   for t in here if t in after} for core, here in where.items()}


def rows_of(t_s, seconds, quotas, used, where):
    """[Row] of an interval. quotas: {core: delivery.Core}; used: as used_of() says."""
    found = []
    for core in sorted(used):
        whole = seconds * quotas[core].quota
        vms = {}
        for thread, (ran, _) in used[core].items():
            vm = where[core][thread]
            vms[vm] = vms.get(vm, 0.0) + ran / whole
        due = sum(delivery.due_of(quotas[core], used[core]).values()) / whole
        found.append(Row(round(t_s, 3), round(seconds, 3), core, sum(vms.values()), due, vms))
    return found


def by_vm(quotas, used, where):
    """{VM: delivery.Delivered} of an interval."""
    found = {}
    for core, here in used.items():
        due = delivery.due_of(quotas[core], here)
        for thread, (ran, _) in here.items():
            vm = where[core][thread]
            found[vm] = found.get(vm, delivery.Delivered()) + delivery.Delivered(ran, due[thread])
    return found


def group_path(group):
    """The folder of an emulated host in the cgroup hierarchy that limits CPU time."""
    return next((os.path.join(m, group) for m in MOUNTS
                 if os.path.isdir(os.path.join(m, group, "c0"))), None)


def _words(path):
    try:
        with open(path, encoding="ascii") as f:
            return f.read().split()
    except OSError:
        return []


def _numbers(path):
    return [int(x) for x in _words(path)]


def groups_of(path, core):
    """The groups of a core in which there can be threads: its own, or one per hardware thread."""
    folder = os.path.join(path, f"c{core}")
    return [folder] + [os.path.join(folder, name) for name in os.listdir(folder)
                       if name.startswith("t") and name[1:].isdigit()]


def threads_on(path, core):
    """Of all groups in it: promises of CPU time have groups of their own."""
    return [t for group, _, _ in os.walk(os.path.join(path, f"c{core}"))
            for t in _numbers(os.path.join(group, "cgroup.threads")) or
            _numbers(os.path.join(group, "tasks"))]


def quota_of(folder):
    """Real CPUs that a group may use, in both versions; without a limit it is one."""
    for names in (("cpu.max",), ("cpu.cfs_quota_us", "cpu.cfs_period_us")):
        words = [w for name in names for w in _words(os.path.join(folder, name))]
        if len(words) == 2:
            return int(words[0]) / int(words[1]) if words[0] not in ("max", "-1") else 1.0
    return None


def quotas_of(path, core):
    """delivery.Core; None: the groups are not there."""
    try:
        quotas = [quota_of(group) for group in groups_of(path, core)]
    except OSError:
        return None
    return None if None in quotas else delivery.Core(quotas[0], quotas[-1])


def cpu_times(thread):
    """(seconds that a thread has run, seconds that it has waited to run); None when it is gone.
    Waiting is both for a CPU that others use and for the next period of a quota."""
    try:
        with open(f"/proc/{thread}/schedstat", encoding="ascii") as f:
            ran, waited = f.read().split()[:2]
        return int(ran) / 1e9, int(waited) / 1e9
    except (OSError, ValueError):
        return None


def threads_of(pid):
    try:
        return [int(x) for x in os.listdir(f"/proc/{pid}/task")]
    except OSError:
        return []


class Meter:
    """Reads all cores; look() as often as wanted. Each look adds to the CPU time of the VMs; a
    row of each core comes once in an interval."""

    def __init__(self, group, num_cores, interval_s, pid_of):
        """pid_of: {VM: function that returns the process of its QEMU, or None}."""
        self.group, self.num_cores = group, num_cores
        self.interval_s, self.pid_of = interval_s, dict(pid_of)
        self.rows, self.given, self.owner, self.pids, self.quotas = [], {}, {}, {}, {}
        self.begun, self.at_begin, self.before, self.where = None, {}, {}, {}

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

    def threads_of(self, vm):
        """Of its vCPUs, on the cores where the last look found them."""
        return [t for here in self.where.values() for t in here if here[t] == vm]

    def _vm_of(self, thread):
        if thread not in self.owner:
            for vm, pid_of in self.pid_of.items():
                if vm not in self.pids or not os.path.exists(f"/proc/{self.pids[vm]}"):
                    self.pids[vm] = pid_of()
                if self.pids[vm]:
                    self.owner.update(dict.fromkeys(threads_of(self.pids[vm]), vm))
        return self.owner.get(thread)

    def _know_quotas(self, where):
        for core in where:
            if core not in self.quotas:
                quota = quotas_of(group_path(self.group) or "", core)
                if quota:
                    self.quotas[core] = quota
        return {core: here for core, here in where.items() if core in self.quotas}

    def look(self, now):
        where = self.where = self._know_quotas(self.places())
        after = {t: cpu_times(t) for here in where.values() for t in here}
        after = {t: times for t, times in after.items() if times is not None}
        for vm, given in by_vm(self.quotas, used_of(self.before, after, where), where).items():
            self.given[vm] = self.given.get(vm, delivery.Delivered()) + given
        self.before = {**self.before, **after}
        if self.begun is not None and now - self.begun < self.interval_s:
            return
        if self.begun is not None and where:
            self.rows += rows_of(now, now - self.begun, self.quotas,
                                 used_of(self.at_begin, after, where), where)
        self.begun, self.at_begin = now, after


def of_lab(lab, vms, cores):
    """Reads the CPU time that the VMs of a lab get on the cores of its emulated host."""
    return Meter(f"ebb-emu-{lab.prefix}", cores, WINDOW_S,
                 {vm.name: lambda vm=vm: hostmem.qemu_pid(vm.uuid) for vm in vms})
