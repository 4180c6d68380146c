# SPDX-License-Identifier: GPL-2.0-or-later
"""What the verdicts of `contention`, `peak` and `isolate` share. Pure functions of samples."""
from dataclasses import dataclass
from typing import Optional

from . import series


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
    even_tps: Optional[float]   # at the mean speed of the machine


def reports(rows):
    """The reports of one engine, by time. Its clock is put on that of the samples by the report
    that came through fastest: all others waited for their sample."""
    told = [s for s in rows if s.engine_t_s is not None]
    if not told:
        return []
    offset = min(s.t_s - s.engine_t_s for s in told)
    speeds = [s.host_speed for s in told if s.host_speed]
    mean_speed = sum(speeds) / len(speeds) if speeds else None
    found, before = [], 0.0
    for s in told:
        even = s.engine_tps * mean_speed / s.host_speed if s.host_speed else None
        found.append(Report(s.engine_t_s + offset, s.engine_t_s - before, s.engine_tps,
                            s.offered_ps, s.queue, s.theta, s.cpus_held, even))
        before = s.engine_t_s
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
