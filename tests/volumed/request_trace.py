# SPDX-License-Identifier: GPL-2.0-or-later
"""What the storage daemon's trace says of each request, and what its meter must have counted.

A trace has each request, of any kind, as it came, was issued (sent to the disk) and was completed,
with the times that scheduler and meter were given. So nothing here depends on when a client or the
disk gets a CPU. The definitions are those of host-agent/volumed/meter.h; the code is not: it goes
through the trace request by request.
"""
import math
import re
from dataclasses import dataclass

SEC = 1000000000
UNIT_BYTES = 65536
LINE = re.compile(r"ebb_volume_(\w+) volume (\S+) (.*)$")


@dataclass(eq=False)
class Request:
    """Times in nanoseconds. `..._nth`: the place in the trace, for several things may happen at
    one time. None: not until the end of the trace."""
    kind: str
    offset: int
    bytes: int
    arrived: int
    arrived_nth: int
    issued: int = None
    issued_nth: int = None
    completed: int = None
    completed_nth: int = None

    @property
    def units(self):
        moves_data = self.kind in ("read", "write")
        return max(1, -(-self.bytes // UNIT_BYTES)) if moves_data else 1


class Trace:
    """requests: of each volume, in the order in which they came. first_end: of each volume, when
    the interval of the meter ended in which its promise was made."""

    def __init__(self, path):
        self.requests, self.first_end = {}, {}
        pending = {}            # by address, which is used again after completion
        with open(path, encoding="ascii") as f:
            # The last line may not be whole yet.
            lines = f.read().split("\n")[:-1]
        for nth, line in enumerate(lines):
            what, volume, rest = LINE.search(line).groups()
            words = rest.split()
            now = int(words[-1])
            if what == "promise":
                self.requests[volume], self.first_end[volume] = [], now
            elif what == "arrive":
                r = Request(words[3], int(words[7]), int(words[9]), now, nth)
                pending[words[1]] = r
                self.requests[volume].append(r)
            elif what == "issue":
                pending[words[1]].issued, pending[words[1]].issued_nth = now, nth
            elif what == "cancel":
                # Its volume is being removed, and nobody judges that.
                self.requests[volume].remove(pending.pop(words[1]))
            else:
                r = pending.pop(words[1])
                r.completed, r.completed_nth = now, nth

    def most_at_disk(self):
        """Return how many requests of all volumes were at the disk at one time."""
        changes = []
        for r in sum(self.requests.values(), []):
            if r.issued is not None:
                changes.append((r.issued_nth, 1))
            if r.completed is not None:
                changes.append((r.completed_nth, -1))
        most = at_disk = 0
        for _, change in sorted(changes):
            at_disk += change
            most = max(most, at_disk)
        return most

    def waiting(self, volume, r):
        """Return the requests of the volume that waited when r came."""
        return [other for other in self.requests[volume] if other.arrived_nth < r.arrived_nth and
                (other.issued is None or other.issued_nth > r.arrived_nth)]

    def passed(self, volume, r):
        """Return the requests of the volume that were issued while r waited."""
        return [other for other in self.requests[volume] if other is not r and
                other.issued is not None and r.arrived_nth < other.issued_nth < r.issued_nth]


class Reckoning:
    """What the meter must have counted of a volume that is promised so many requests per second.
    `delays`: of all requests that were issued at or after their deadline; nanoseconds."""

    def __init__(self, trace, volume, iops):
        self.iops, self.end = iops, trace.first_end[volume]
        self.delays = []
        self.overdue = self.violated = self.charged = self.early = self.missed = 0
        self.waiting = []
        self.slot = self.deadline = 0
        self.begin = 0, 0       # missed and early when the interval began
        events = [(r.arrived_nth, self._arrive, r) for r in trace.requests[volume]]
        events += [(r.issued_nth, self._issue, r) for r in trace.requests[volume] if r.issued]
        for _, step, r in sorted(events, key=lambda e: e[0]):
            step(r)

    def finish(self, intervals):
        """So many intervals have ended after the last event."""
        for _ in range(intervals):
            self._end_interval()
        return self

    def _time(self, units):
        return units * SEC // self.iops

    def _until(self, now):
        while now >= self.end:
            self._end_interval()

    def _end_interval(self):
        if self.waiting:
            self._miss(self.end)
        deadline = self.deadline
        for r in self.waiting:
            deadline = max(deadline, r.arrived)
            if self.end - SEC <= deadline < self.end:
                self.overdue += r.units
            deadline += self._time(r.units)
        self.violated += max(0, self.missed - self.begin[0] - (self.early - self.begin[1]))
        self.begin = self.missed, self.early
        self.end += SEC

    def _miss(self, now):
        while self.slot + self._time(1) <= now:
            self.slot += self._time(1)
            self.missed += 1

    def _arrive(self, r):
        self._until(r.arrived)
        if not self.waiting:
            self.slot = max(self.slot, r.arrived)
        self.waiting.append(r)

    def _issue(self, r):
        self._until(r.issued)
        due = max(self.deadline, self.waiting[0].arrived)
        if due <= r.issued:
            self.delays.append(r.issued - max(due, r.arrived))
            self.deadline = due + self._time(r.units)
        if self.slot <= r.issued:
            self.slot += self._time(r.units)
            self.charged += r.units
        else:
            self.early += r.units
        self.waiting.remove(r)
        if not self.waiting:
            self._miss(r.issued)


def percentile(values, permille):
    """The nearest rank: so many thousandths of the values are not above it."""
    return sorted(values)[max(0, math.ceil(len(values) * permille / 1000) - 1)]
