# SPDX-License-Identifier: GPL-2.0-or-later
"""CPU time of some processes, and of the CPUs they run on, from the host's kernel."""
import os
from dataclasses import dataclass, field

from . import core_meter


@dataclass
class Used:
    """Seconds since the meter was made."""
    ran_s: float = 0.0          # the processes' threads ran
    of_process: dict = field(default_factory=dict)  # {pid: the same of one}
    waited_s: float = 0.0       # they waited for a CPU
    machine_s: float = 0.0      # their CPUs were busy, or the machine's host took them


class Meter:
    """pids: of processes that live as long as the meter; cpus: on which all their threads stay,
    None: on any. Threads that end between two looks count up to the look before."""

    def __init__(self, pids, cpus=None):
        self.pids, self.cpus = list(pids), cpus
        self.used = Used(of_process={pid: 0.0 for pid in self.pids})
        self.threads, self.machine_s = self._threads(), busy_s(self.cpus)

    def _threads(self):
        """{(process, thread): (seconds that it ran, that it waited)}"""
        found = {}
        for pid in self.pids:
            for thread in core_meter.threads_of(pid):
                times = core_meter.cpu_times(thread)
                if times is not None:
                    found[pid, thread] = times
        return found

    def look(self):
        """Used, so far."""
        threads, machine_s = self._threads(), busy_s(self.cpus)
        of_process, waited_s = dict(self.used.of_process), self.used.waited_s
        for (pid, thread), (ran, waited) in threads.items():
            before = self.threads.get((pid, thread), (0.0, 0.0))
            of_process[pid] += ran - before[0]
            waited_s += waited - before[1]
        self.used = Used(sum(of_process.values()), of_process, waited_s,
                         self.used.machine_s + machine_s - self.machine_s)
        self.threads, self.machine_s = threads, machine_s
        return self.used


def busy_s(cpus=None):
    """CPU seconds that somebody used on some CPUs, or on all; those that the machine's own host
    gave to others count, too."""
    names = {"cpu"} if cpus is None else {f"cpu{cpu}" for cpu in cpus}
    ticks = 0
    with open("/proc/stat", encoding="ascii") as f:
        for line in f:
            name, *words = line.split()
            if name in names:
                user, nice, system, _idle, _iowait, irq, softirq, steal = map(int, words[:8])
                ticks += user + nice + system + irq + softirq + steal
    return ticks / os.sysconf("SC_CLK_TCK")
