# SPDX-License-Identifier: GPL-2.0-or-later
"""Verdict of `isolate`: two tenants, a socket each with its hyperthreads (paper 4.3, figures 7, 8).

The steps of the run cut it: the first tenant alone, both apart, both under the policy fair, the
first alone again. Throughput apart is compared with that under fair in the same run, both tenants
together, had all CPU time come that was due (delivery.py), at even speed of the machine.

On an emulated host the difference is that of cores and threads: a policy that keeps tenants apart
may give out both threads of a core, since they belong to one of them; under fair, which is free to
put both on a socket, each CPU has a core of its own, whose second thread stays unused. Where fair
really puts them is measured, but asked for by nobody. Caches and memory that are no longer shared,
from which the paper's gain comes as well, are not emulated; nothing here says anything of them.
"""
from harness.judge import delivery, engine_series, series, smooth
from harness.judge.checks import (Verdict, idle_core_share, latency_checks, outcome_checks,
                                  reason_checks, sampling_checks)
from harness.record.schema import Check

GAIN_PCT = 115.0        # throughput apart, of that under fair; two threads give 130 at most
SETTLE_S = 2.0          # after a step
MIN_RATES = 6


def spans(run, samples):
    """{step: (begin, end)}: from a step that names a state of things to the next step."""
    steps = sorted(run["steps"], key=lambda s: s["t_s"])
    end = max((s.t_s for s in samples), default=0.0)
    found = {}
    for step, after in zip(steps, steps[1:] + [None]):
        found.setdefault(step["action"], (step["t_s"], after["t_s"] if after else end))
    return found


def evaluate(run, samples, events):
    at = spans(run, samples)
    first, second = run["vms"]
    rows = series.by_vm(samples)
    apart, fair = at.get("apart"), at.get("fair")
    threads = run["host"]["threads"] * run["host"]["cores"] // run["host"]["sockets"]
    told = {name: [_throughput(rows.get(vm, []), at.get(name)) for vm in run["vms"]]
            for name in ("apart", "fair")}
    rates = {name: [of_vm.even_tps for of_vm in both] for name, both in told.items()}
    alone = _throughput(rows.get(first, []), _before(run, "arrive")).even_tps
    missing = {name: delivery.missing_pct(delivery.total(of_vm.given for of_vm in both))
               for name, both in told.items()}
    checks = [
        Check.equal("sockets_shared_apart_pct", _shared_pct(run, samples, apart), 0, "%",
                    "samples in which both tenants held CPUs of one socket, both running apart"),
        *[Check.equal(f"threads_of_{vm}", _median_held(rows.get(vm, []), apart), threads, "CPUs",
                      "held by the tenant, apart: all hyperthreads of its socket")
          for vm in run["vms"]],
        Check.at_least("gain_pct", engine_series.percent(_sum(rates["apart"]),
                                                         _sum(rates["fair"])), GAIN_PCT, "%",
                       "throughput of both tenants apart, of that under the policy fair").of_work(),
        delivery.check(missing.values()),
        Check.equal("sockets_alone", _sockets_at_end(run, rows.get(first, []), at.get("left")),
                    run["host"]["sockets"], "sockets", f"{first} is on when it is alone again"),
    ]
    begin, end = (at["arrive"][0], at["left"][1]) if "arrive" in at and "left" in at else (0, 0)
    checks += outcome_checks(run) + reason_checks(samples, events) + latency_checks(events)
    checks += sampling_checks(samples, begin, end)
    idle = idle_core_share(samples, run["host"]["cores"], begin, end)
    return Verdict(checks, [], {
        "load": run["load"],
        "tps": {"alone": alone, **{k: dict(zip(run["vms"], v)) for k, v in rates.items()}},
        "spans": {k: [round(t, 3) for t in v] for k, v in at.items()},
        "cpu_missing_pct": missing,
        "sockets_shared_fair_pct": _shared_pct(run, samples, fair),
        "first_apart_pct": engine_series.percent(rates["apart"][0], alone),
        "idle_core_pct": None if idle is None else round(100 * idle, 1), "second": second})


def _before(run, action):
    """The ten seconds before a step."""
    t = next((s["t_s"] for s in run["steps"] if s["action"] == action), None)
    return None if t is None else (t - run["dwell_s"], t)


def _inside(rows, span):
    return [] if span is None else [s for s in rows if span[0] + SETTLE_S <= s.t_s <= span[1]]


def _throughput(rows, span):
    return engine_series.together(
        engine_series.rates(_inside(rows, span), delivery.Clock(rows)), smooth.mean_speed(rows),
        MIN_RATES)


def _sum(rates):
    return None if not rates or None in rates else sum(rates)


def _median_held(rows, span):
    return engine_series.median([s.cpus_held for s in _inside(rows, span)])


def _shared_pct(run, samples, span):
    """Of the moments in which both run."""
    vms, both, shared = run["vms"], 0, 0
    for t, now in series.ticks(samples):
        if span is None or not span[0] + SETTLE_S <= t <= span[1] or not all(v in now for v in vms):
            continue
        both += 1
        shared += any(all(n) for n in zip(*(engine_series.on_sockets(run, now[v])
                                                  for v in vms)))
    return engine_series.percent(shared, both) if both else None


def _sockets_at_end(run, rows, span):
    inside = _inside([s for s in rows if s.state == "running" and s.workers], span)
    return sum(n > 0 for n in engine_series.on_sockets(run, inside[-1])) if inside else None
