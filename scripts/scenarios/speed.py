# SPDX-License-Identifier: GPL-2.0-or-later
"""How fast the machine's CPUs are while a scenario runs, and whether they run at all.

The CPUs of shared machines change their speed by tens of percent within seconds (turbo, what the
neighbours do), which throughput over time can not be told apart from without a reference measured
beside it. The reference is a fixed piece of work, done a few times a second on some 5% of a CPU;
speed is work done per second of CPU time, so that waiting for a CPU does not count.

A machine that is itself a guest can stand still, for tenths of a second, without saying so. On each
CPU a thread with real-time priority gets up every few milliseconds: if it is late, the CPU was not
there for anybody.
"""
import ctypes
import multiprocessing
import os
import signal
import time

from .lab import die_with_parent

BURST_LOOPS = 60000     # 3 to 6 ms
PAUSE_S = 0.08
WINDOW_S = 1.0
RHYTHM_S = 0.005
LATE_S = 0.01           # what a kernel that is busy, or not preemptible, may take
RT_PRIORITY = 50


def _burst(loops):
    x = 1
    for _ in range(loops):
        x = (x * 1103515245 + 12345) & 0x7fffffff
    return x


def _measure(done, busy_ns):
    die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)    # ended by its owner
    os.setsid()
    while True:
        begin = time.thread_time_ns()
        _burst(BURST_LOOPS)
        busy_ns.value += time.thread_time_ns() - begin
        done.value += BURST_LOOPS
        time.sleep(PAUSE_S)


class SpeedMeter:
    """Runs the reference in a process of its own; read() as often as wanted."""

    def __init__(self):
        context = multiprocessing.get_context("fork")
        self.done = context.Value(ctypes.c_int64, 0, lock=False)
        self.busy_ns = context.Value(ctypes.c_int64, 0, lock=False)
        self.seen = []
        self.process = context.Process(target=_measure, args=(self.done, self.busy_ns),
                                       daemon=True)
        self.process.start()

    def read(self, now):
        """Loops per millisecond of CPU time over the last second; None before there is one."""
        self.seen.append((now, self.busy_ns.value, self.done.value))
        while len(self.seen) > 2 and self.seen[-1][0] - self.seen[1][0] >= WINDOW_S:
            self.seen.pop(0)
        (begin, busy, done), (end, busy_now, done_now) = self.seen[0], self.seen[-1]
        if end - begin < WINDOW_S / 2 or busy_now <= busy:
            return None
        return (done_now - done) * 1e6 / (busy_now - busy)

    def stop(self):
        self.process.terminate()
        self.process.join(5)


def _watch(cpu, paused_ns):
    die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.setsid()
    os.sched_setaffinity(0, {cpu})
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(RT_PRIORITY))
    except PermissionError:
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
