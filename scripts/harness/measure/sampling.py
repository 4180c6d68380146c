# SPDX-License-Identifier: GPL-2.0-or-later
"""Samples while a scenario runs: reads `ebbctl top --json`, one object per interval and line."""
import json
import subprocess
import threading
import time

from harness.judge import delivery
from harness.lab.process import die_with_parent, end
from harness.record.schema import Event, Sample

from . import yardstick_vm
from .speed import PauseMeter, SpeedMeter

INTERVAL_S = 0.1
HISTORY_ROWS = 100000
SAME_REPORT_S = 0.02    # age and time of look are read by two processes
# CPU times that took longer to read are of no known moment: this program may have waited for a CPU
# before, within or after the reading.
LONGEST_READ_S = 0.05


class Rates:
    """Turns the counters of a guest's reports into rates over the last second.

    A shorter time would measure when reports arrive, not when transactions commit.
    """
    WINDOW_S = 1.0

    def __init__(self):
        self.reports = {}       # vm: [(time of report, committed, aborted)], the window's

    def update(self, vm, at_s, committed, aborted):
        """at_s: when the report was made. A report that was seen before changes nothing."""
        reports = self.reports.setdefault(vm, [])
        if reports and committed < reports[-1][1]:
            reports.clear()     # another engine: nothing to compare with
        if not reports or at_s - reports[-1][0] > SAME_REPORT_S:
            reports.append((at_s, committed, aborted))
        # One that is at least a window old, to measure from, and all after it.
        while len(reports) > 2 and reports[-1][0] - reports[1][0] >= self.WINDOW_S:
            reports.pop(0)
        span = reports[-1][0] - reports[0][0]
        if span < self.WINDOW_S / 2:
            return None, None
        return tuple((reports[-1][i] - reports[0][i]) / span for i in (1, 2))

    def forget(self, vm):
        self.reports.pop(vm, None)


def sample_of(vm, name, t_s, rates):
    """A row of samples.csv from one VM as ebbctl describes it."""
    s = Sample(round(t_s, 3), name, vm["cpus_held"], vm["cpus_limit"],
               vm.get("mem_held_bytes", 0), vm.get("mem_limit_bytes", 0), None, None, None, None,
               state=vm["state"], driver=int(bool(vm.get("driver"))),
               cpus_target=vm.get("cpus_target", 0),
               nodes_held="/".join(str(n["held"]) for n in vm.get("nodes", [])),
               mem_nodes_held="/".join(str(n.get("mem_held_bytes", 0))
                                       for n in vm.get("nodes", [])))
    told = vm.get("telemetry")
    if not told or vm["state"] != "running":
        rates.forget(name)
        return s
    s.report_age_ms = int(told["age_ms"])
    s.tps, s.aborts_ps = rates.update(name, t_s - told["age_ms"] / 1000, told["committed"],
                                      told["aborted"])
    s.p50_us, s.p95_us, s.p99_us = (int(told[k]) for k in ("p50_us", "p95_us", "p99_us"))
    s.workers = told["workers"]
    s.committed, s.aborted, s.failed = (told[k] for k in ("committed", "aborted", "failed"))
    return s


def event_of(row, prefix, unix_start):
    """An event from one row of `ebbctl history --json`."""
    phases = {name: row[name + "_ms"] for name in ("agent", "libvirt", "place")
              if row.get(name + "_ms") is not None}
    node = row.get("node")
    return Event(round(row["ts"] - unix_start, 4), unprefixed(row.get("vm") or "", prefix),
                 row["event"], row.get("cpus") or 0,
                 node if isinstance(node, int) and node >= 0 else None,
                 row.get("reason") or "", row.get("total_ms"), phases, row.get("bytes") or 0)


def unprefixed(name, prefix):
    return name[len(prefix):] if name.startswith(prefix) else name


def history(lab, unix_start):
    """The agent's history, by time. unix_start: when the scenario began."""
    rows = lab.ask("history", "--limit", str(HISTORY_ROWS))
    rows = rows["history"] if isinstance(rows, dict) else rows
    return sorted((event_of(row, lab.prefix, unix_start) for row in rows), key=lambda e: e.t_s)


class Sampler(threading.Thread):
    """Follows the agent until stopped. Anybody may read `samples` and `now` under `lock`."""

    def __init__(self, lab, vms, meter, probe=None):
        """meter: core_meter.Meter, has the CPU time of the VMs. probe: called with each sample, to
        add what else the agent does not know."""
        super().__init__(name="sampler", daemon=True)
        self.prefix, self.vms = lab.prefix, list(vms)
        self.unix_start = time.time()
        self.mono_start = time.monotonic()
        self.samples, self.now, self.error = [], {}, None
        self.lock = threading.Lock()
        self.rates = Rates()
        self.meter, self.probe, self.tour = meter, probe, yardstick_vm.Tour(meter)
        self.speed, self.pauses = SpeedMeter(), PauseMeter()
        # Started here, not in the thread: it must live as long as the process, not the thread.
        self.top = subprocess.Popen(
            lab.ctl("--json", "top", "--interval", str(INTERVAL_S)), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            start_new_session=True, preexec_fn=die_with_parent)

    def elapsed(self):
        return time.monotonic() - self.mono_start

    def run(self):
        for line in self.top.stdout:
            t_s = self.elapsed()
            try:
                self._take(t_s, json.loads(line))
            except (ValueError, KeyError, TypeError) as e:
                self.error = f"ebbctl top: {type(e).__name__}: {e} in {line.strip()[:300]}"
                return

    def _read_cpu_times(self):
        """When that was; None where it took too long to say."""
        begin = self.elapsed()
        self.meter.look(begin)
        end = self.elapsed()
        return None if end - begin > LONGEST_READ_S else (begin + end) / 2

    def _take(self, t_s, top):
        seen, speed, pause = {}, self.speed.read(t_s), self.pauses.read()
        looked_s = top["ts"] - self.unix_start
        metered_s = self._read_cpu_times()
        self.tour()
        for vm in top["vms"]:
            name = unprefixed(vm["name"], self.prefix)
            if name in self.vms:
                seen[name] = sample_of(vm, name, looked_s, self.rates)
                seen[name].read_t_s = round(t_s if metered_s is None else metered_s, 3)
                seen[name].host_speed, seen[name].host_pause_ms = speed, pause
                given = self.meter.given.get(name, delivery.Delivered())
                if metered_s is not None:
                    seen[name].cpu_ms = 1000 * given.cpu_s
                    seen[name].cpu_due_ms = 1000 * given.due_s
                if self.probe:
                    self.probe(seen[name])
        with self.lock:
            self.now = seen
            self.samples += seen.values()

    def state(self):
        with self.lock:
            return dict(self.now)

    def stop(self):
        self.speed.stop()
        self.pauses.stop()
        end(self.top)
        self.join(10)
        said = self.top.stderr.read().strip()
        self.top.stdout.close()
        self.top.stderr.close()
        return said
