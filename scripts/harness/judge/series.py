# SPDX-License-Identifier: GPL-2.0-or-later
"""Small arithmetic on time series of samples. Pure; no opinion on what is good."""
import bisect
import math
import statistics


def by_vm(samples):
    """{vm: its samples, by time}, in the order in which the VMs first appear."""
    series = {}
    for s in samples:
        series.setdefault(s.vm, []).append(s)
    for rows in series.values():
        rows.sort(key=lambda s: s.t_s)
    return series


class Curve:
    """A value between the moments at which it is known, by straight lines."""

    def __init__(self, points):
        """points: [(t_s, value)], by time."""
        self.times, self.values = [p[0] for p in points], [p[1] for p in points]

    def at(self, t_s):
        """None before the first point and after the last."""
        i = bisect.bisect_left(self.times, t_s)
        if i < len(self.times) and self.times[i] == t_s:
            return self.values[i]
        if i in (0, len(self.times)):
            return None
        part = (t_s - self.times[i - 1]) / (self.times[i] - self.times[i - 1])
        return self.values[i - 1] + part * (self.values[i] - self.values[i - 1])


def ticks(samples):
    """[(t_s, {vm: sample})] by time: what the whole host looked like at each moment."""
    at = {}
    for s in samples:
        at.setdefault(s.t_s, {})[s.vm] = s
    return sorted(at.items())


def percentile(values, fraction):
    """Nearest rank: the smallest value with at least this fraction of all values at or below it."""
    if not values:
        return None
    ordered = sorted(values)
    return ordered[max(0, math.ceil(fraction * len(ordered)) - 1)]


def distribution(values):
    """{median, p95, n} of a list of numbers; None where there are none."""
    return {"median": round(statistics.median(values), 3) if values else None,
            "p95": round(percentile(values, 0.95), 3) if values else None,
            "n": len(values)}


def runs_of(rows, key):
    """Cuts rows into stretches in which key(row) stays the same: [(value, rows)]."""
    runs = []
    for row in rows:
        value = key(row)
        if runs and runs[-1][0] == value:
            runs[-1][1].append(row)
        else:
            runs.append((value, [row]))
    return runs


def fit_rate(points):
    """The rate r for which y = r * x is the least wrong in relative terms.

    Relative, because a plateau of one CPU must weigh as much as one of many: minimises the sum of
    (y / (r x) - 1)^2, whose minimum is at sum(z^2) / sum(z) for z = y / x.
    """
    z = [y / x for x, y in points if x > 0 and y is not None]
    total = sum(z)
    return sum(v * v for v in z) / total if total > 0 else None


def largest_gap_s(times, begin, end):
    """The longest stretch of [begin, end] without a value, None if there is no value in it."""
    inside = [t for t in times if begin <= t <= end]
    if not inside:
        return None
    edges = [begin] + inside + [end]
    return max(b - a for a, b in zip(edges, edges[1:]))


def longest_stall_s(rows):
    """The longest time in which a VM's count of committed transactions did not grow."""
    longest, since, last = 0.0, None, None
    for s in rows:
        if s.committed is None:
            continue
        if last is None or s.committed != last:
            if since is not None:
                # The report that shows growth again ends the stall; the one before began it.
                longest = max(longest, s.t_s - since)
            since, last = s.t_s, s.committed
    if rows and since is not None:
        longest = max(longest, rows[-1].t_s - since)
    return longest
