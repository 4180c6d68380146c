# SPDX-License-Identifier: GPL-2.0-or-later
"""Throughput over time from a counter of committed transactions. Pure."""


def mean_speed(samples):
    """Of the machine over all samples; None: it was not measured."""
    speeds = [s.host_speed for s in samples if s.host_speed]
    return sum(speeds) / len(speeds) if speeds else None


def rate(first, last):
    """Committed per second between two samples of a VM."""
    span = last.t_s - first.t_s
    return (last.committed - first.committed) / span if span > 0 else None


def evened(value, rows, usual):
    """The value, had the machine's CPUs been as fast during rows as usual."""
    speeds = [s.host_speed for s in rows if s.host_speed]
    if value is None or not usual or not speeds:
        return value
    return value * usual * len(speeds) / sum(speeds)


def moving_average(rows, window_s, least_s=1.0):
    """[(t_s, transactions per second)] over the window before t_s, or since the first row while
    that is closer. rows: of one engine, by time."""
    rows = [s for s in rows if s.committed is not None]
    points, first = [], 0
    for i, s in enumerate(rows):
        while s.t_s - rows[first].t_s > window_s:
            first += 1
        if s.t_s - rows[first].t_s >= least_s:
            points.append((s.t_s, rate(rows[first], s)))
    return points


def overall(rows, usual=None):
    """Throughput from the first to the last of the rows, None if there are too few."""
    rows = [s for s in rows if s.committed is not None]
    return evened(rate(rows[0], rows[-1]), rows, usual) if len(rows) > 1 else None
