# SPDX-License-Identifier: GPL-2.0-or-later
"""The frame of a benchmark: its folder, and the report at the end."""
import os
import time
from datetime import datetime, timezone

from harness.lab import versions
from harness.record import schema

from . import metrics, page


class Run:
    """One run of a benchmark, from its start to its files in `folder`."""

    def __init__(self, benchmark, title, folder):
        self.benchmark, self.title, self.folder = benchmark, title, folder
        self.started = time.time()
        self.notes = []

    def write(self, where, rows, bounds=()):
        """summary.json and report.html; returns the summary. where: in_lab() or natively()."""
        started = datetime.fromtimestamp(self.started, timezone.utc)
        summary = {"benchmark": self.benchmark, "title": self.title, **where,
                   "started_at": started.isoformat(timespec="seconds"),
                   "duration_s": round(time.time() - self.started, 1),
                   "notes": self.notes, "metrics": rows, "bounds": list(bounds)}
        wrong = metrics.problems(summary)
        if wrong:
            raise schema.SchemaError(f"summary of {self.benchmark}: " + "; ".join(wrong))
        os.makedirs(self.folder, exist_ok=True)
        with open(os.path.join(self.folder, schema.REPORT), "w", encoding="utf-8") as f:
            f.write(page.render(summary))
        schema.write_json(os.path.join(self.folder, schema.SUMMARY), summary)
        return summary


def in_lab(lab):
    return {"accelerator": lab.accelerator, "host": host(lab.host_spec),
            "versions": versions.of_lab(lab)}


def natively(spec):
    """Without a VM. spec: the host, in a word."""
    return {"accelerator": "none", "host": host(spec), "versions": versions.of_programs()}


def host(spec):
    with open("/proc/meminfo", encoding="ascii") as f:
        kib = int(f.readline().split()[1])
    return {"spec": spec, "emulated": spec.startswith("emulated:"),
            "cpus": len(os.sched_getaffinity(0)), "memory_gib": round(kib / (1 << 20), 1)}
