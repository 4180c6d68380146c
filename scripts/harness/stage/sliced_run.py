# SPDX-License-Identifier: GPL-2.0-or-later
"""Scenarios that compare two set-ups in slices of time, turn by turn in the same run.

What changes about the machine meanwhile (other programs, the speed of its CPUs) then meets both
alike. A slice gives one row of samples.csv per database that ran in it, with its throughput over
the whole slice as its own engine measured it.
"""
import os
import time
from dataclasses import dataclass, field

from harness.record import schema
from harness.record.schema import Sample


@dataclass
class Slices:
    """The slices run and the samples taken so far."""
    begun: float = field(default_factory=time.monotonic)
    samples: list = field(default_factory=list)
    steps: list = field(default_factory=list)

    def elapsed(self):
        return time.monotonic() - self.begun

    def step(self, action, who, detail):
        print(f"{self.elapsed():7.1f} s  {detail}", flush=True)
        self.steps.append({"t_s": round(self.elapsed(), 3), "action": action, "vm": who,
                           "detail": detail})

    def add(self, who, cpus, result, given=None, **where):
        """A database's result of a slice; given: delivery.Delivered, of a VM; where: variant, turn,
        remote_ops, tenants."""
        if given is not None:
            where.update(cpu_ms=1000 * given.cpu_s, cpu_due_ms=1000 * given.due_s)
        self.samples.append(Sample(
            round(self.elapsed(), 3), who, cpus, cpus, 0, 0, result["tps"],
            result["conflicts"] / result["seconds"], round(result["p50_us"]),
            round(result["p99_us"]), round(result["p95_us"]), workers=result["workers"],
            cpus_target=cpus, committed=result["committed"], aborted=result["conflicts"],
            failed=result["failed"], report_age_ms=0, **where))


def record(a, p, accelerator, slices, results, versions, events=(), **more):
    """Writes what was seen. results: {VM or process: what its engine did in all}; more: what else
    goes into run.json."""
    schema.write_samples(os.path.join(a.out, schema.SAMPLES), slices.samples)
    schema.write_history(os.path.join(a.out, schema.HISTORY), events)
    duration = slices.elapsed()
    schema.write_json(os.path.join(a.out, schema.RUN), {
        "scenario": a.scenario, "ablate": a.ablate, "seed": a.seed, "time_scale": a.time_scale,
        "accelerator": accelerator, "host": p.host, "policy": p.policy,
        "vms": list(results), "startup_cpus": 0, "dwell_s": 0.0, "steps": slices.steps,
        "results": results,
        "started_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - duration)),
        "duration_s": round(duration, 1), "versions": versions, **more})
