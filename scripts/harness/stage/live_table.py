# SPDX-License-Identifier: GPL-2.0-or-later
"""The live table: redrawn in place on a terminal, appended line by line elsewhere."""
import sys

HEAD = f"{'VM':<6}{'state':<10}{'CPUs':>7}  {'':<16}{'trans/s':>9}{'aborts/s':>10}{'p99':>10}"
REDRAW_S, APPEND_S = 0.5, 2.0


class Table:
    def __init__(self, title, vms, cores, out=sys.stdout):
        self.title, self.vms, self.cores, self.out = title, vms, cores, out
        self.live = out.isatty()
        self.drawn = 0
        self.due = 0.0

    def show(self, t_s, now, doing):
        if t_s < self.due:
            return
        self.due = t_s + (REDRAW_S if self.live else APPEND_S)
        if self.live:
            self._redraw(t_s, now, doing)
        else:
            print(f"{t_s:6.1f} s  " + "  ".join(self._short(vm, now.get(vm)) for vm in self.vms) +
                  f"  ({doing})", file=self.out, flush=True)

    def _redraw(self, t_s, now, doing):
        lines = [f"{self.title}  {t_s:5.1f} s  {doing}", HEAD]
        lines += [row(vm, now.get(vm), self.cores) for vm in self.vms]
        up = f"\033[{self.drawn}F" if self.drawn else ""
        self.out.write(up + "".join(f"\033[2K{line}\n" for line in lines))
        self.out.flush()
        self.drawn = len(lines)

    @staticmethod
    def _short(vm, s):
        if s is None or s.state != "running":
            return f"{vm} off"
        return f"{vm} {phase(s)} {s.cpus_held}/{s.cpus_limit} {count(s.tps)}/s p99 {took(s.p99_us)}"


def row(vm, s, cores):
    """One line of the table."""
    if s is None or s.state != "running":
        return f"{vm:<6}{'off' if s is None else phase(s):<10}"
    bar = ("#" * s.cpus_held).ljust(s.cpus_limit, ".")[:cores]
    return f"{vm:<6}{phase(s):<10}{f'{s.cpus_held}/{s.cpus_limit}':>7}  {bar:<16}" \
           f"{count(s.tps):>9}{count(s.aborts_ps):>10}{took(s.p99_us):>10}"


def phase(s):
    if s.state != "running":
        return s.state
    return "runs" if s.driver and s.workers else "boots" if not s.driver else "up"


def count(value):
    if value is None:
        return "-"
    return f"{value / 1000:.1f}k" if value >= 1000 else f"{value:.0f}"


def took(us):
    if us is None:
        return "-"
    return f"{us / 1000:.1f} ms" if us >= 1000 else f"{us} us"
