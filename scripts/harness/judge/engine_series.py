# SPDX-License-Identifier: GPL-2.0-or-later
"""What verdicts share that compare the throughput of engines. Pure functions of samples."""
from dataclasses import dataclass
from typing import Optional

from . import delivery, series


@dataclass
class Report:
    """One interval of an engine."""
    t_s: float              # its end, on the clock of the samples
    seconds: float          # its length
    tps: float
    offered_ps: Optional[float]
    queue: Optional[int]
    theta: float
    cpus: int               # held, when the sample was taken
    given: Optional[delivery.Delivered]     # CPU time in the interval
    speed: Optional[float]      # of the machine, about then


def reports(rows):
    """The reports of one engine, by time. Its clock is put on that of the samples by the report
    that came through fastest: all others waited for their sample."""
    told = [s for s in rows if s.engine_t_s is not None]
    if not told:
        return []
    offset = min(s.read_at - s.engine_t_s for s in told)
    clock = delivery.Clock(rows)
    found, before = [], 0.0
    for s in told:
        found.append(Report(s.engine_t_s + offset, s.engine_t_s - before, s.engine_tps,
                            s.offered_ps, s.queue, s.theta, s.cpus_held,
                            clock.between(before + offset, s.engine_t_s + offset), s.host_speed))
        before = s.engine_t_s
    return found


@dataclass
class Rate:
    """Commits between one report of a guest and the next."""
    seconds: float
    tps: float
    given: Optional[delivery.Delivered]
    speed: Optional[float]


def rates(rows, clock):
    """[Rate] of rows of one VM. clock: delivery.Clock of all of its rows."""
    seen = {}
    for s in rows:
        if s.committed is not None and s.report_age_ms is not None:
            seen.setdefault(s.committed, (s.t_s - s.report_age_ms / 1000, s.host_speed))
    told = sorted(seen.items())
    return [Rate(end - begin, (last - first) / (end - begin), clock.between(begin, end), speed)
            for (first, (begin, _)), (last, (end, speed)) in zip(told, told[1:]) if end > begin]


@dataclass
class Throughput:
    """Of several intervals together. None: not known."""
    tps: Optional[float] = None         # as measured
    even_tps: Optional[float] = None    # had all CPU time come that was due, at the usual speed
    given: Optional[delivery.Delivered] = None

    @property
    def missing_pct(self):
        return delivery.missing_pct(self.given)


def together(intervals, usual, least):
    """Throughput of Rates, or of Reports; not known with fewer than `least`. usual: mean speed of
    the machine.

    Work and CPU time are added up first: a single report comes some hundredths of a second late,
    which is much of its interval and little of all.
    """
    intervals = list(intervals)
    if len(intervals) < least:
        return Throughput()
    seconds = sum(i.seconds for i in intervals)
    tps = sum(i.tps * i.seconds for i in intervals) / seconds if seconds > 0 else None
    given = delivery.total(i.given for i in intervals)
    speeds = [i.speed for i in intervals if i.speed]
    full = None if given is None else given.full(tps)
    even = None if full is None or not speeds or not usual else \
        full * usual * len(speeds) / sum(speeds)
    return Throughput(tps, even, given)


def on_sockets(run, sample):
    """CPUs held on each socket of the host, whatever the guest's nodes are called."""
    held = [0] * run["host"]["sockets"]
    for socket, part in zip(run["load"]["sockets"][sample.vm], sample.nodes_held.split("/")):
        held[socket] += int(part or 0)
    return held


def cpus_at(rows, t_s):
    """The resources held at a moment, by the last sample before it; None: no sample."""
    held = None
    for s in rows:
        if s.t_s > t_s:
            break
        held = s.cpus_held
    return held


def median(values, least=1):
    """None with fewer than `least` values."""
    known = [v for v in values if v is not None]
    return series.percentile(known, 0.5) if len(known) >= least else None


def percent(part, whole):
    return None if part is None or not whole else round(100.0 * part / whole, 1)
