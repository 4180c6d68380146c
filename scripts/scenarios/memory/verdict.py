# SPDX-License-Identifier: GPL-2.0-or-later
"""Verdict of `memory`: CPUs and memory of a node are taken and returned (paper 4.6, figure 13).

The steps of the run say when they were taken and given; everything else is read from the samples,
the history and what the engine said. After each of the three plateaus (the end of the time before,
without and after) the whole table is verified while transactions run. That the agent counts memory
as free is not enough: the host's memory behind the pools must fall and rise by as much.
"""
from dataclasses import dataclass
from typing import Optional

from harness.judge import series
from harness.judge.checks import (MEM_EVENTS, Verdict, latency_checks, outcome_checks,
                                  reason_checks, sampling_checks, total)
from harness.record.schema import Check

PLATEAU_SHARE = 0.6     # of a dwell time, its end: engine and disk have come to rest
HOST_RSS_PCT = 80.0     # of what is given back or taken again, seen in the host's memory
RETURNED_PCT = 90.0     # of the memory that was taken, held again in the end
RECOVERED_PCT = 85.0    # of the throughput before
RETURN_MS = 20000       # from the offer until the memory is held again
STALL_S = 2.0           # longest time without a commit
PHASES = ("before", "without", "after")
MIB = 1 << 20


@dataclass
class Story:
    """The moments of a run, in seconds. None: it did not happen."""
    take: Optional[float] = None    # the operator takes the node's CPUs and memory
    met: Optional[float] = None     # nothing is held there any more, until they are given
    give: Optional[float] = None    # the operator gives them back
    back: Optional[float] = None    # the memory is held again
    stop: Optional[float] = None    # the engine is told to end


def bytes_on(sample, node):
    """Pool memory that a VM holds on a guest node."""
    parts = sample.mem_nodes_held.split("/")
    return int(parts[node]) if node < len(parts) and parts[node] else 0


def cpus_on(sample, node):
    parts = sample.nodes_held.split("/")
    return int(parts[node]) if node < len(parts) and parts[node] else 0


def story(run, rows):
    at = {s["action"]: s["t_s"] for s in run["steps"]}
    found = Story(at.get("take"), None, at.get("give"), None, at.get("stop"))
    node = run["memory"]["node"]
    if found.take is not None:
        until = found.give if found.give is not None else float("inf")
        for s in rows:
            if not found.take <= s.t_s <= until:
                continue
            if bytes_on(s, node):
                found.met = None
            elif found.met is None:
                found.met = s.t_s
    before = _median(bytes_on(s, node) for s in plateau(run, rows, found, "before"))
    if found.give is not None and before:
        found.back = next((s.t_s for s in rows if s.t_s >= found.give and
                           bytes_on(s, node) >= before * RETURNED_PCT / 100), None)
    return found


def plateau(run, rows, at, phase):
    """The samples at the end of the time before the demand, without the node, after its return."""
    verified = {s["action"]: s["t_s"] for s in run["steps"]}.get(f"verify {phase}")
    end = {"before": at.take, "without": at.give, "after": at.stop}[phase]
    if end is None:
        return []
    # Verifying the table costs the engine throughput.
    end = min(end, verified) if verified is not None else end
    return [s for s in rows if end - PLATEAU_SHARE * run["dwell_s"] <= s.t_s < end and
            s.state == "running" and s.workers > 0]


def _median(values):
    return series.percentile([v for v in values if v is not None], 0.5)


def even_tps(rows, mean_speed):
    """Median throughput, had the machine's CPUs been as fast as on average over the run."""
    if mean_speed is None:
        return _median(s.tps for s in rows)
    return _median(s.tps * mean_speed / s.host_speed for s in rows
                   if s.tps is not None and s.host_speed)


def evaluate(run, samples, events):
    rows = series.by_vm(samples).get(run["vms"][0], [])
    node, at = run["memory"]["node"], story(run, rows)
    flat = {phase: plateau(run, rows, at, phase) for phase in PHASES}
    speeds = [s.host_speed for s in rows if s.host_speed]
    mean_speed = sum(speeds) / len(speeds) if speeds else None
    held = {p: _median(bytes_on(s, node) for s in flat[p]) for p in PHASES}
    rss = {p: _median(s.host_rss_bytes for s in flat[p]) for p in PHASES}
    tps = {p: even_tps(flat[p], mean_speed) for p in PHASES}
    met_ms, back_ms = _ms(at.take, at.met), _ms(at.give, at.back)
    revoked = sum(e.bytes for e in events if e.event == "mem_revoke")
    checks = _demand_checks(run, events, met_ms, held, revoked)
    checks.append(_cpus_check(flat["without"], node))
    checks += _host_checks(held, rss)
    checks += _return_checks(run, held, back_ms)
    checks += _table_checks(run)
    checks += _throughput_checks(run, rows, at, tps)
    checks += outcome_checks(run)
    checks.append(Check.equal("lost_records", total(run, "lost_records"), 0, "records",
                              "records of the table that were lost with their memory"))
    checks += _latency_checks(run) + latency_checks(events)
    checks += reason_checks(samples, events) + [_mem_reasons(events)]
    checks += sampling_checks(samples, *_span(flat))
    return Verdict(checks, [], {
        "memory": run["memory"],
        "demand_met_ms": met_ms, "memory_back_ms": back_ms, "revoked_bytes": revoked,
        "mem_add_ms": _said(run, "mem_add_ms"), "mem_release_ms": _said(run, "mem_release_ms"),
        "moments": {k: None if v is None else round(v, 3) for k, v in at.__dict__.items()},
        "plateaus": {p: {"held_bytes": held[p], "host_rss_bytes": rss[p], "tps": _median(
            s.tps for s in flat[p]), "even_tps": tps[p],
            "cold_reads_ps": _rate(flat[p], "cold_reads")} for p in PHASES}})


def _ms(begin, end):
    return None if begin is None or end is None else round((end - begin) * 1000)


def _pct(part, whole):
    return None if part is None or not whole else round(100.0 * part / whole, 1)


def _difference(a, b):
    return None if a is None or b is None else a - b


def _rate(rows, name):
    seen = [(s.t_s, getattr(s, name)) for s in rows if getattr(s, name) is not None]
    if len(seen) < 2 or seen[-1][0] <= seen[0][0]:
        return None
    return round((seen[-1][1] - seen[0][1]) / (seen[-1][0] - seen[0][0]), 1)


def _demand_checks(run, events, met_ms, held, revoked):
    demanded = [e for e in events if e.event == "mem_demand" and
                e.node == run["memory"]["node"]]
    before = held["before"]
    return [
        Check.at_least("held_before_mib", None if before is None else round(before / MIB, 1),
                       run["memory"]["pool_mib"] / 2, "MiB",
                       "memory of the node that the engine held before: what is at stake"),
        Check.at_least("demands", len(demanded), 1, "demands", "in the agent's history"),
        Check.at_most("demand_met_ms", met_ms, run["memory"]["deadline_ms"], "ms",
                      "from taking the node until nothing is held there; the bound is the "
                      "deadline of the demand"),
        Check.equal("revoked_mib", round(revoked / MIB, 1) if demanded else None, 0, "MiB",
                    "memory that the host had to take by force")]


def _cpus_check(rows, node):
    most = max((cpus_on(s, node) for s in rows), default=None)
    return Check.equal("cpus_held_without", most, 0, "CPUs",
                       "most CPUs of the node held in the time without it")


def _host_checks(held, rss):
    given = _difference(held["before"], held["without"])
    taken = _difference(held["after"], held["without"])
    return [
        Check.at_least("host_rss_fell_pct", _pct(_difference(rss["before"], rss["without"]), given),
                       HOST_RSS_PCT, "%", "fall of the host's memory behind the pools, of the "
                       "bytes given back"),
        Check.at_least("host_rss_rose_pct", _pct(_difference(rss["after"], rss["without"]), taken),
                       HOST_RSS_PCT, "%", "its rise, of the bytes held again")]


def _return_checks(run, held, back_ms):
    return [
        Check.at_least("memory_returned_pct", _pct(held["after"], held["before"]), RETURNED_PCT,
                       "%", "memory of the node held in the end, of that before"),
        Check.at_most("memory_back_ms", back_ms, RETURN_MS * run["time_scale"], "ms",
                      "from giving the node until so much is held there")]


def _table_checks(run):
    """The whole table as the engine verified it in each plateau, and the records on disk then."""
    told = {v["phase"]: v for v in run["memory"]["verifications"]}
    found = [told.get(p) for p in PHASES]
    complete = all(found)

    def of_all(value):
        return value() if complete else None
    pairs = [(a, b) for i, a in enumerate(found) for b in found[i + 1:] if a and b]
    cold = told.get("without", {}).get("cold_records")
    return [
        Check.equal("tables_verified", sum(v is not None for v in found), len(PHASES), "tables",
                    "verifications of the whole table: before, without and after"),
        Check.equal("tables_incomplete", of_all(lambda: sum(
            not v["complete"] or v["records"] != run["memory"]["records"] for v in found)), 0,
            "tables", "verifications that did not find each key once and nothing else"),
        Check.equal("damaged_records", of_all(lambda: sum(v["damaged"] for v in found)), 0,
                    "records", "records whose content is not what their last update wrote"),
        Check.equal("updates_undone", of_all(lambda: sum(
            a["updates"] > b["updates"] for a, b in pairs)), 0, "times",
            "a later verification found fewer updates in the table than an earlier one"),
        Check.equal("checksums_changed", of_all(lambda: sum(
            a["updates"] == b["updates"] and a["checksum"] != b["checksum"] for a, b in pairs)),
            0, "times", "checksum of the whole content changed though nothing was updated"),
        Check.at_least("cold_records", cold, 1, "records",
                       "records on disk when the table was verified without the node")]


def _throughput_checks(run, rows, at, tps):
    active = [s for s in rows if s.state == "running" and s.workers > 0 and
              (at.stop is None or s.t_s < at.stop)]
    stall = round(series.longest_stall_s(active), 2) if active else None
    return [
        Check.at_least("tps_without_pct", _pct(tps["without"], tps["before"]), 1, "%",
                       "throughput without the node, of that before: the engine went on"),
        Check.at_least("tps_after_pct", _pct(tps["after"], tps["before"]), RECOVERED_PCT, "%",
                       "throughput after, of that before, at even speed of the machine"),
        Check.at_most("longest_stall_s", stall, STALL_S * run["time_scale"], "s",
                      "longest time in which the engine committed nothing")]


def _said(run, name):
    """A distribution that the engine measured itself."""
    told = (run["results"].get(run["vms"][0]) or {}).get(name) or {}
    return {"median": told.get("median") if told.get("n") else None,
            "p95": told.get("p95") if told.get("n") else None, "n": told.get("n", 0)}


def _latency_checks(run):
    return [Check.at_least(f"{name}s_timed", _said(run, f"{name}_ms")["n"], 1, "calls",
                           "calls that the engine timed")
            for name in ("mem_add", "mem_release")]


def _mem_reasons(events):
    rows = [e for e in events if e.event in MEM_EVENTS]
    return Check.equal("memory_without_reason",
                       sum(not e.reason.strip() for e in rows) if rows else None, 0, "rows",
                       f"of {len(rows)} rows about memory in the history")


def _span(flat):
    seen = [s.t_s for rows in flat.values() for s in rows]
    return (min(seen), max(seen)) if seen else (0.0, 0.0)
