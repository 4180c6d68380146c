# SPDX-License-Identifier: GPL-2.0-or-later
"""CPU time that a VM was given, and CPU time that it was due. Pure; no opinion on what is good.

An emulated core is a CPU cgroup with a quota. A thread on it is ready while it runs or waits to
run, and a ready thread is due what the quotas of its groups let it have. Other programs on the
machine can keep a core from using up its quota: the rest is missing, and is no fault of whoever
decides which VM holds which core.

What a VM could have used and did not ask for is not missing: a CPU that is held while its worker
does not run counts as low throughput. The quotas are those of the groups in which the kernel has
the threads, so a core that was never given does not count as due either.
"""
from dataclasses import dataclass
from typing import Optional

from harness.record.schema import CPU_MISSING, Check

from . import series

# With more than this missing a run is not judged: work per CPU time is no longer that of a core
# which others leave alone, since what waits for a CPU keeps its locks and its place in the caches.
MAX_MISSING_PCT = 25.0


@dataclass
class Core:
    """A core's quotas, in real CPUs: of the core, and of each of its hardware threads."""
    quota: float
    thread_quota: float


def due_of(core, used):
    """{thread: CPU seconds that it was due} in an interval, of the threads on one core.

    used: {thread: (seconds that it ran, seconds that it waited to run)}. Which of them were ready
    at the same time is not known; as many as possible is assumed, which makes what the core was
    due the least that it can have been. What is missing of that is shared out by how long threads
    were ready: what one VM of the host had in place of another is not missing.
    """
    ready = {thread: ran + waited for thread, (ran, waited) in used.items()}
    due, left = 0.0, core.quota
    for seconds in sorted(ready.values(), reverse=True):
        rate = min(core.thread_quota, left)
        left -= rate
        due += rate * seconds
    missing, all_ready = due - sum(ran for ran, _ in used.values()), sum(ready.values())
    return {thread: ran + (missing * ready[thread] / all_ready if all_ready > 0 else 0.0)
            for thread, (ran, _) in used.items()}


@dataclass
class Delivered:
    """CPU seconds of a VM in a span of time; several of them add up."""
    cpu_s: float = 0.0      # it ran
    due_s: float = 0.0      # it would have run, had no other program run on its cores

    def __add__(self, other):
        return Delivered(self.cpu_s + other.cpu_s, self.due_s + other.due_s)

    @property
    def missing(self):
        """The part of the CPU time due that is missing, 0 to 1."""
        return max(0.0, 1.0 - self.cpu_s / self.due_s) if self.due_s > 0 else 0.0

    def full(self, amount):
        """An amount of work in that span, had nothing been missing: work per CPU second
        delivered, times the CPU seconds due. None: it got no CPU time, so nothing is known."""
        if amount is None or self.cpu_s <= 0:
            return None
        return amount * max(1.0, self.due_s / self.cpu_s)


def known_of(rows):
    """Those of which the CPU times are known (sampling.py)."""
    return [s for s in rows if s.cpu_ms is not None and s.cpu_due_ms is not None]


class Clock:
    """The CPU time of one VM at any moment, between its samples."""

    def __init__(self, rows):
        known = known_of(rows)
        self.cpu_s = series.Curve([(s.read_at, s.cpu_ms / 1000) for s in known])
        self.due_s = series.Curve([(s.read_at, s.cpu_due_ms / 1000) for s in known])

    def between(self, begin, end):
        """None where the samples do not say."""
        spent = [curve.at(t_s) for curve in (self.cpu_s, self.due_s) for t_s in (begin, end)]
        return None if None in spent else Delivered(spent[1] - spent[0], spent[3] - spent[2])


def over(rows):
    """From the first to the last of some samples of a VM; None if they do not say."""
    known = known_of(rows)
    return Clock(known).between(known[0].read_at, known[-1].read_at) if known else None


def total(parts):
    """Of several spans or VMs; None if one of them is not known, or there is none."""
    parts = list(parts)
    return None if not parts or None in parts else sum(parts, Delivered())


def missing_pct(delivered: Optional[Delivered]):
    return None if delivered is None else round(100 * delivered.missing, 2)


def check(values):
    """That enough came to judge the rest by. values: percent missing, of each part of the run that
    is compared; None: not known."""
    values = list(values)
    worst = None if not values or None in values else max(values)
    return Check.at_most(CPU_MISSING, worst, MAX_MISSING_PCT, "%",
                         "CPU time that was due and did not come since other programs ran, in the "
                         "part of the run with the most")
