# SPDX-License-Identifier: GPL-2.0-or-later
"""How fast the machine's CPUs are while a scenario runs, and whether they run at all.

The CPUs of shared machines change their speed by tens of percent within seconds (turbo, load of
other guests). Throughput over time cannot be told apart from that without a reference measured
beside it; yardstick_vm.py has a better one, which costs a VM. The reference here is a fixed piece
of work, done on each CPU some 25 times a second, which takes some 5% of a CPU. Speed is work per
second of CPU time, so waiting for a CPU does not count. The work has real-time priority: without
it, a busy machine would run it rarely, and the speed would be that of those few moments.

A machine that is itself a guest can stand still for tenths of a second and not know it. On each
CPU a thread with real-time priority wakes every few milliseconds. If it wakes late, nothing ran on
that CPU meanwhile.
"""
import ctypes
import multiprocessing
import os
import signal
import time

from harness.lab.process import die_with_parent

BURST_LOOPS = 15000     # about 1 ms
PAUSE_S = 0.04
WINDOW_S = 1.0
RHYTHM_S = 0.005
LATE_S = 0.01           # what a kernel that is busy, or not preemptible, may take
RT_PRIORITY = 50


def _burst(loops):
    x = 1
    for _ in range(loops):
        x = (x * 1103515245 + 12345) & 0x7fffffff
    return x


def _rule(cpu, priority):
    """Makes this process the first to run on a CPU; false: that is not allowed."""
    die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)    # ended by its owner
    os.setsid()
    os.sched_setaffinity(0, {cpu})
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))
    except PermissionError:
        return False
    return True


def _measure(cpu, done, busy_ns):
    _rule(cpu, RT_PRIORITY - 1)     # works without, too
    while True:
        begin = time.thread_time_ns()
        _burst(BURST_LOOPS)
        busy_ns.value += time.thread_time_ns() - begin
        done.value += BURST_LOOPS
        time.sleep(PAUSE_S)


def speed_of(before, after):
    """Loops per millisecond of CPU time, mean of the CPUs. before, after: [(loops done, ns of CPU
    time)] of each CPU; None: a CPU has done none meanwhile."""
    if any(now[1] <= then[1] for then, now in zip(before, after)):
        return None
    return sum((now[0] - then[0]) * 1e6 / (now[1] - then[1])
               for then, now in zip(before, after)) / len(after)


class SpeedMeter:
    """Does the reference in a process for each CPU; read() as often as wanted."""

    def __init__(self):
        context = multiprocessing.get_context("fork")
        self.counts = [(cpu, context.Value(ctypes.c_int64, 0, lock=False),
                        context.Value(ctypes.c_int64, 0, lock=False))
                       for cpu in os.sched_getaffinity(0)]
        self.seen = []
        self.processes = [context.Process(target=_measure, args=of_cpu, daemon=True)
                          for of_cpu in self.counts]
        for process in self.processes:
            process.start()

    def read(self, now):
        """Loops per millisecond of CPU time over the last second; None before there is one."""
        self.seen.append((now, [(done.value, busy_ns.value)
                                for _, done, busy_ns in self.counts]))
        while len(self.seen) > 2 and self.seen[-1][0] - self.seen[1][0] >= WINDOW_S:
            self.seen.pop(0)
        (begin, before), (end, after) = self.seen[0], self.seen[-1]
        return None if end - begin < WINDOW_S / 2 else speed_of(before, after)

    def stop(self):
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            process.join(5)


def _watch(cpu, paused_ns):
    if not _rule(cpu, RT_PRIORITY):
        return      # -1 stays: not known
    paused_ns.value = 0
    before = time.monotonic_ns()
    while True:
        time.sleep(RHYTHM_S)
        now = time.monotonic_ns()
        late = now - before - RHYTHM_S * 1e9
        if late > LATE_S * 1e9:
            paused_ns.value += int(late)
        before = now


class PauseMeter:
    """How long the machine stood still; read() as often as wanted."""

    def __init__(self):
        context = multiprocessing.get_context("fork")
        self.cpus = {cpu: context.Value(ctypes.c_int64, -1, lock=False)
                     for cpu in os.sched_getaffinity(0)}
        self.seen = dict.fromkeys(self.cpus, 0)
        self.processes = [context.Process(target=_watch, args=item, daemon=True)
                          for item in self.cpus.items()]
        for process in self.processes:
            process.start()

    def read(self):
        """Milliseconds since the call before in which a CPU was not there, the worst CPU; None:
        not known."""
        now = {cpu: paused_ns.value for cpu, paused_ns in self.cpus.items()}
        if min(now.values()) < 0:
            return None
        longest = max(now[cpu] - self.seen[cpu] for cpu in now)
        self.seen = now
        return round(longest / 1e6, 1)

    def stop(self):
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            process.join(5)
