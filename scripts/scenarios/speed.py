# SPDX-License-Identifier: GPL-2.0-or-later
"""How fast the machine's CPUs are while a scenario runs.

The CPUs of shared machines change their speed by tens of percent within seconds (turbo, what the
neighbours do), which throughput over time can not be told apart from without a reference measured
beside it. The reference is a fixed piece of work, done a few times a second on some 5% of a CPU;
speed is work done per second of CPU time, so that waiting for a CPU does not count.
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
