# SPDX-License-Identifier: GPL-2.0-or-later
"""Figure 13 of the paper, drawn again: throughput while memory goes and comes; below it where the
memory is, what is read from disk, and the CPUs."""
from harness.draw import chart
from harness.judge import series

from . import verdict

MIB = 1 << 20
HELD, LIMIT, RSS, DISK = chart.COLOURS[0], chart.INK, chart.COLOURS[1], chart.COLOURS[2]
READ_WINDOW_S = 1.0
RECORD_BYTES = 1024


def draw(run, samples, _summary):
    rows = series.by_vm(samples).get(run["vms"][0], [])
    begin, end = 0.0, max((s.t_s for s in rows), default=1.0)

    def line(value, colour, dash="", **more):
        return chart.Line([(s.t_s, value(s) if s.state == "running" else None) for s in rows],
                          colour, dash, **more)

    def mib(name):
        return lambda s: None if getattr(s, name) is None else getattr(s, name) / MIB
    panels = [
        chart.Panel("throughput [1000 trans./s]", 230, [
            line(lambda s: s.tps / 1000 if s.tps and s.workers else None, HELD)]),
        chart.Panel("memory [MiB]", 210, [
            line(mib("mem_limit_bytes"), LIMIT, "2 3", width=1.4, step=True),
            line(mib("mem_held_bytes"), HELD, step=True),
            line(mib("host_rss_bytes"), RSS, "7 3"),
            line(lambda s: None if s.cold_records is None else
                 s.cold_records * RECORD_BYTES / MIB, DISK, "9 3 2 3")]),
        chart.Panel("cold reads [1/s]", 110, [
            chart.Line(cold_read_rates(rows), DISK)]),
        chart.Panel("CPUs held", 90, [
            line(lambda s: s.cpus_held or None, HELD, step=True)],
            top=run["host"]["cores"] + 0.5)]
    legend = [("held", HELD, ""), ("limit", LIMIT, "2 3"), ("memory of the host behind it", RSS,
                                                            "7 3"), ("on disk", DISK, "9 3 2 3")]
    return chart.draw(panels, marks(run, rows), begin, end, legend=legend)


def cold_read_rates(rows):
    """[(t, reads per second)] over the last second, from the engine's counter."""
    seen = [(s.t_s, s.cold_reads) for s in rows if s.cold_reads is not None]
    rates, first = [], 0
    for t, count in seen:
        while t - seen[first][0] > READ_WINDOW_S:
            first += 1
        since, before = seen[first]
        rates.append((t, max(0, count - before) / (t - since) if t > since else None))
    return rates


def marks(run, rows):
    at = verdict.story(run, rows)
    words = ((at.take, "node taken", chart.COLOURS[1]), (at.met, "demand met", chart.COLOURS[0]),
             (at.give, "node given", chart.COLOURS[2]), (at.back, "memory held", chart.COLOURS[0]))
    found = [chart.Mark(t, text, colour) for t, text, colour in words if t is not None]
    return found + [chart.Mark(s["t_s"], "", chart.SOFT, False) for s in run["steps"]
                    if s["action"].startswith("verify")]
