# SPDX-License-Identifier: GPL-2.0-or-later
"""What verdicts share that compare the throughput of engines. Pure functions of samples."""
from dataclasses import dataclass
from typing import Optional

from . import delivery, series
from .smooth import mean_speed


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
    even_tps: Optional[float]   # as even_tps() says
    given: Optional[delivery.Delivered]     # CPU time in the interval


def even_tps(tps, given, speed, mean_speed):
    """Throughput, had all CPU time come that was due, at the mean speed of the machine."""
    if given is None or not speed or not mean_speed:
        return None
    full = given.full(tps)
    return None if full is None else full * mean_speed / speed


def reports(rows):
    """The reports of one engine, by time. Its clock is put on that of the samples by the report
    that came through fastest: all others waited for their sample."""
    told = [s for s in rows if s.engine_t_s is not None]
    if not told:
        return []
    offset = min(s.t_s - s.engine_t_s for s in told)
    usual, clock = mean_speed(told), delivery.Clock(rows)
    found, before = [], 0.0
    for s in told:
        given = clock.between(before + offset, s.engine_t_s + offset)
        found.append(Report(s.engine_t_s + offset, s.engine_t_s - before, s.engine_tps,
                            s.offered_ps, s.queue, s.theta, s.cpus_held,
                            even_tps(s.engine_tps, given, s.host_speed, usual), given))
        before = s.engine_t_s
    return found


@dataclass
class Rate:
    """What was committed between one report of a guest and the next."""
    tps: float
    even_tps: Optional[float]
    given: Optional[delivery.Delivered]


def rates(rows, clock, usual):
    """[Rate] of rows of one VM. clock: delivery.Clock of all of its rows; usual: mean speed."""
    seen = {}
    for s in rows:
        if s.committed is not None and s.report_age_ms is not None:
            seen.setdefault(s.committed, (s.t_s - s.report_age_ms / 1000, s.host_speed))
    told, found = sorted(seen.items()), []
    for (first, (begin, _)), (last, (end, speed)) in zip(told, told[1:]):
        if end > begin:
            tps, given = (last - first) / (end - begin), clock.between(begin, end)
            found.append(Rate(tps, even_tps(tps, given, speed, usual), given))
    return found


def on_sockets(run, sample):
    """CPUs held on each socket of the host, whatever the guest's nodes are called."""
    held = [0] * run["host"]["sockets"]
    for socket, part in zip(run["load"]["sockets"][sample.vm], sample.nodes_held.split("/")):
        held[socket] += int(part or 0)
    return held


def cpus_at(rows, t_s):
    """What is held at a moment, by the last sample before; None: there is none."""
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
