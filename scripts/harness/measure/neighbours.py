# SPDX-License-Identifier: GPL-2.0-or-later
"""Neighbours that only compute: processes on a core of an emulated host, where the vCPUs of tenants
without a promise are. Guests would do the same; two dozen of them take minutes to boot."""
import os
import signal
import subprocess

from harness.lab.process import die_with_parent

from . import core_meter

# It waits until it is told to go on.
PROGRAM = "kill -STOP $$; while :; do :; done"


def vcpus_of(pid):
    """The threads of a QEMU that run vCPUs."""
    found = []
    for thread in core_meter.threads_of(pid):
        try:
            with open(f"/proc/{pid}/task/{thread}/comm", encoding="ascii") as f:
                if f.read().startswith("CPU "):
                    found.append(thread)
        except OSError:
            pass
    return found


def cpu_s(threads):
    """CPU seconds that some threads have run so far, together."""
    times = [core_meter.cpu_times(thread) for thread in threads]
    return sum(ran for ran, _ in (t for t in times if t is not None))


class Neighbours:
    """Use as a context, within that of the lab: the core's group must be there."""

    def __init__(self, lab, core, count, beside):
        """beside: a thread on the core. The neighbours may run where it may."""
        self.host = core_meter.group_path(f"ebb-emu-{lab.prefix}")
        self.core, self.count, self.beside = f"c{core}", count, beside
        self.processes = []

    def __enter__(self):
        cpus = os.sched_getaffinity(self.beside)
        for _ in range(self.count):
            process = subprocess.Popen(["sh", "-c", PROGRAM], stdin=subprocess.DEVNULL,
                                       start_new_session=True, preexec_fn=_die_with_parent)
            self.processes.append(process)
            os.sched_setaffinity(process.pid, cpus)
            self._place(process.pid)
        # One that is told to go on before it has stopped would stop for ever.
        for process in self.processes:
            os.waitpid(process.pid, os.WUNTRACED)
        return self

    def _place(self, pid):
        # `rest` is there once a vCPU of the core was promised something (emureserve.h).
        folders = [os.path.join(self.host, self.core, "rest"), os.path.join(self.host, self.core)]
        folder = next(path for path in folders if os.path.isdir(path))
        if os.path.exists(os.path.join(folder, "cgroup.threads")):
            _write(os.path.join(self.host, "cgroup.procs"), pid)
            _write(os.path.join(folder, "cgroup.threads"), pid)
        else:
            _write(os.path.join(folder, "tasks"), pid)

    def compute(self):
        self._signal(signal.SIGCONT)

    def rest(self):
        self._signal(signal.SIGSTOP)

    def _signal(self, signum):
        for process in self.processes:
            process.send_signal(signum)

    def cpu_s(self):
        return cpu_s([process.pid for process in self.processes])

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.wait()


def _die_with_parent():
    """Also while it is stopped, when other signals have no effect."""
    die_with_parent(signal.SIGKILL)


def _write(path, pid):
    with open(path, "w", encoding="ascii") as f:
        f.write(str(pid))
