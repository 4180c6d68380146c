# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether promises of I/O were kept ("SQLVM", 2.2 and 3.2). Pure; no opinion on what is good.

A promise of R requests per second is broken while requests of the tenant wait and it gets less. A
tenant with too few requests open to use its promise has none that wait. What was issued is held
against the promise of the plan, not against what the meter takes for the promise, so it can be
compared with runs in which nothing was promised.
"""
import bisect
from dataclasses import astuple, dataclass

LEAST_DUE = 20.0        # units in an interval; with fewer, one more or less is too much

@dataclass
class Look:
    """Counters of a volume at a moment."""
    t_s: float
    issued: int             # units
    busy_s: float           # in which a request waited or was at the disk
    waiting_s: float = 0.0  # in which a request waited
    violated: float = 0.0   # units of which the meter says that they were due and not issued

    def minus(self, other):
        """How the counters grew; t_s is the time that it took."""
        return Look(*(a - b for a, b in zip(astuple(self), astuple(other))))


@dataclass
class Interval:
    begin_s: float
    grown: Look

    @property
    def rate(self):
        return self.grown.issued / self.grown.t_s

    @property
    def waiting(self):
        """The part of the time in which requests waited."""
        return self.grown.waiting_s / self.grown.t_s

    def kept(self, rate):
        """The part of its promise that the tenant got while requests waited, if any did for long
        enough to say."""
        due = rate * self.grown.waiting_s
        return self.grown.issued / due if due >= LEAST_DUE else None


def within(looks, begin, end):
    return [look for look in looks if begin <= look.t_s <= end]


def intervals(looks, seconds=1.0):
    """[Interval], one after the other, each as long as that or little more: it ends with a look,
    so that nothing is guessed between two looks."""
    found, first = [], looks[0] if looks else None
    for look in looks:
        if look.t_s - first.t_s >= seconds:
            found.append(Interval(first.t_s, look.minus(first)))
            first = look
    return found


def in_force_s(looks, changed_at, rate, window_s, part):
    """How long after a change of the promise to a higher rate a volume began to get it: the first
    look from which on it got `part` of the rate for window_s. None: never."""
    later = [look for look in looks if look.t_s >= changed_at]
    times = [look.t_s for look in later]
    for i, look in enumerate(later):
        j = bisect.bisect_left(times, look.t_s + window_s)
        if j == len(later):
            return None
        grew = later[j].minus(look)
        if grew.issued >= part * rate * grew.t_s:
            return look.t_s - changed_at
    return None


def violated(due, issued):
    """Units that were due in an interval and not issued."""
    return max(0.0, due - issued)


def busy_in(spans, begin, end):
    """Seconds of [begin, end] in which at least one of these spans was open. spans: [(begin, end)]
    of requests, in any order."""
    busy, until = 0.0, begin
    for first, last in sorted(spans):
        first, last = max(first, until), min(last, end)
        if last > first:
            busy += last - first
            until = last
    return busy


def reckon(trace, edges):
    """The same counters as a meter's, from a trace of requests alone: a Look for each moment in
    `edges`. trace: [(arrived, answered)]. A request counts as issued when it is answered: a client
    does not see the moment before."""
    ends = sorted(end for _, end in trace)
    looks, busy, last = [], 0.0, None
    for edge in edges:
        if last is not None:
            busy += busy_in([s for s in trace if s[1] > last and s[0] < edge], last, edge)
        looks.append(Look(edge, bisect.bisect_right(ends, edge), busy))
        last = edge
    return looks
