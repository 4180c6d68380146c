# SPDX-License-Identifier: GPL-2.0-or-later
"""summary.json from a run's recorded files; the same code for a run and for its ablation."""
import os

from harness.judge import series, yardstick
from harness.judge.checks import GIVE_EVENTS, latencies_ms, total
from harness.record import cores, schema

from . import ledger, paper


def summarize(scenario, run, samples, events):
    verdict = scenario.evaluate(run, samples, events)
    add, remove = latencies_ms(events, "grant"), latencies_ms(events, *GIVE_EVENTS)
    checks = [c.__dict__ for c in verdict.checks]
    summary = {
        "scenario": run["scenario"],
        "verdict": schema.verdict_of(checks),
        "ablate": run["ablate"],
        "checks": checks,
        "accelerator": run["accelerator"],
        "host": run["host"],
        "seed": run["seed"],
        "time_scale": run["time_scale"],
        "failed_transactions": total(run, "failed"),
        "lost_updates": total(run, "lost_updates"),
        "cpu_add_ms": series.distribution(add),
        "cpu_remove_ms": series.distribution(remove),
        "cpu_phases_ms": {kind: _phases(events, event)
                          for kind, event in (("add", "grant"), ("remove", "release"),
                                              ("lend", "lend"))},
        "share_convergence_ms": series.distribution(verdict.convergence_ms),
        "forced_cpus": sum(max(1, e.cpus) for e in events if e.event == "force"),
        "committed_transactions": total(run, "committed"),
        "engines": {vm: _engine(run["results"].get(vm)) for vm in run["vms"]},
        "agent_core_pct": _agent_core_pct(run),
        **verdict.details,
        "started_at": run["started_at"],
        "duration_s": run["duration_s"],
        "versions": run["versions"],
    }
    summary["paper"] = paper.beside(scenario.words, summary)
    problems = schema.summary_problems(summary)
    if problems:
        raise schema.SchemaError("summary: " + "; ".join(problems))
    return summary


def _agent_core_pct(run):
    """CPU time of the agent in percent of one core, over the whole scenario."""
    if not run.get("agent_s"):
        return None
    return round(100 * run["agent_cpu_s"] / run["agent_s"], 2)


ENGINE_FIELDS = ("committed", "aborted", "failed", "lost_updates", "verified", "cpus_added",
                 "cpus_removed", "adds_failed", "removes_failed", "cpu_add_ms", "cpu_remove_ms",
                 "cpu_add_lend_ms", "cpu_remove_lend_ms",
                 "memory")


def _engine(result):
    """What an engine said at its end; latencies as its own clock saw them, request to worker."""
    return {name: result[name] for name in ENGINE_FIELDS if name in result} if result else None


def _phases(events, kind):
    """Median of each phase of an exchange as the agent timed it."""
    names = sorted({name for e in events if e.event == kind for name in e.phases_ms})
    return {name: series.distribution([e.phases_ms[name] for e in events
                                       if e.event == kind and name in e.phases_ms])
            for name in names}


def load(folder):
    """(run, samples, events) of a folder that a scenario left."""
    run = schema.read_json(os.path.join(folder, schema.RUN))
    if os.path.exists(os.path.join(folder, schema.CORES)):
        run["cores"] = cores.read(os.path.join(folder, schema.CORES))
    if os.path.exists(os.path.join(folder, schema.LEDGER)):
        run["ledger"] = ledger.rows_of(schema.read_json(os.path.join(folder, schema.LEDGER)))
    samples = schema.read_samples(os.path.join(folder, schema.SAMPLES))
    events = schema.read_history(os.path.join(folder, schema.HISTORY))
    if run.get("has_yardstick"):
        samples, events = yardstick.apply(samples, events)
    return run, samples, events
