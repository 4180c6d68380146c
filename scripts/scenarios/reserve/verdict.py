# SPDX-License-Identifier: GPL-2.0-or-later
"""Verdict of `reserve` ("SQLVM", section 4): promises are kept where there is enough, and where
there is not the meter says so.

Part 1 judges what the server says that it issued against the promise of the plan. Part 4 judges
what the server says against what its clients saw.
"""
import statistics

from harness.judge import delivery, promises
from harness.judge.checks import Verdict, total
from harness.judge.promises import Look
from harness.record.schema import Check

from .plan import GREEDY, MAX_ONLY, MEET, NEIGHBOURS, NONE, OVERBOOKED, READERS

MEAN_OFF_PCT = 3.0
INTERVAL_PART = 0.97            # of the promise, in an interval of a second
INTERVALS_PCT = 99.0            # of all intervals
CONTENDED_PART = 0.99           # of a second, in which requests of both VMs waited
CONTENDED_PCT = 60.0            # of all seconds
IN_FORCE_MS = 100.0
IN_FORCE_WINDOW_S = 0.5         # in which the new rate must be there
ALONE_OFF_PCT = 10.0            # of what the same reservation gives t1 alone
LOWER_PCT = 25.0                # than that, at least, is what t1 has without a reservation
CPU_OFF_PCT = 1.0               # per cent of the core
# Deviations of the meter of memory that may be chance (docs/control-protocol.md, "ledger").
RELATIVE_IO_PCT, CHANCE_READS = 2.0, 16
P99_PCT = 100 / 3               # of that with a maximum only
TYPES = 5                       # of transactions like TPC-C's
LEAST_MEASURED = 200            # transactions of a type
SERVED_PCT = 98.0               # of those that arrive; at the end of the run some wait
# A client sees a request as issued when it is answered, and as open a little longer than the
# server does.
RECKONED_OFF_PCT = 2.0
LEAST_VIOLATED = 1000           # units: what is at stake


def _looks(part, name):
    return {volume: [Look(*row) for row in rows] for volume, rows in part.get(name, {}).items()}


def _rounded(value, digits=2):
    return None if value is None else round(value, digits)


# ---- part 1 ----

def halves(m):
    """[(volume, promise, begin, end)] of both halves of part 1; none if it was not run whole."""
    if "end_s" not in m:
        return []
    first, second = (m["begin_s"], m["swap_s"]), (m["swapped_s"] + IN_FORCE_MS / 1000, m["end_s"])
    return [("vm1", m["high"], *first), ("vm2", m["low"], *first),
            ("vm1", m["low"], *second), ("vm2", m["high"], *second)]


def measure_meet(m):
    """[{vm, promised, mean_iops, std_iops, mean_pct, seconds, contended, judged, kept}], one for
    each half and VM. The mean is that of seconds in which requests of both VMs waited: otherwise
    one has too little work for its promise, and the other gets what is left."""
    looks, found = _looks(m, "looks"), []
    for vm, rate, begin, end in halves(m):
        of_vm = {name: promises.intervals(promises.within(rows, begin, end))
                 for name, rows in looks.items()}
        rates = [own.rate for own, *both in zip(of_vm[vm], *of_vm.values())
                 if min(i.waiting for i in both) >= CONTENDED_PART]
        parts = [i.kept(rate) for i in of_vm[vm]]
        mean = statistics.mean(rates) if rates else None
        found.append({
            "vm": vm, "promised": rate, "mean_iops": _rounded(mean, 1),
            "std_iops": round(statistics.pstdev(rates), 1) if rates else None,
            "mean_pct": None if mean is None else round(100 * mean / rate, 2),
            "seconds": len(parts), "contended": len(rates),
            "judged": sum(p is not None for p in parts),
            "kept": sum(p is not None and p >= INTERVAL_PART for p in parts)})
    return found


def judge_meet(m):
    told = measure_meet(m)
    means = [h["mean_pct"] for h in told]
    off = None if not means or None in means else max(abs(p - 100) for p in means)
    contended, judged, seconds = (sum(h[name] for h in told)
                                  for name in ("contended", "judged", "seconds"))
    kept_pct = 100 * sum(h["kept"] for h in told) / judged if judged else None
    took = None
    if told:
        took = promises.in_force_s(_looks(m, "looks")["vm2"], m["swapped_s"], m["high"],
                                   IN_FORCE_WINDOW_S, INTERVAL_PART)
    return [
        Check.at_least("meet_contended_pct", _rounded(100 * contended / seconds if seconds else
                                                      None), CONTENDED_PCT, "%",
                       "part 1: seconds in which requests of both VMs waited all the time: what is "
                       "at stake"),
        Check.at_most("meet_mean_off_pct", _rounded(off), MEAN_OFF_PCT, "%",
                      "IOPS in these, off the promise; the VM and half with the most"),
        Check.at_least("meet_intervals_pct", _rounded(kept_pct), INTERVALS_PCT, "%",
                       f"of {judged} seconds of a VM in which it got {100 * INTERVAL_PART:g} % or "
                       "more of its promise for the time in which its requests waited"),
        Check.at_most("meet_in_force_ms", _rounded(None if took is None else 1000 * took, 1),
                      IN_FORCE_MS, "ms", "until a promise that was raised was kept")
    ], {"meet": told}


# ---- part 2 ----

def measure_greedy(g):
    """[{mode, greedy, has_loop, is_turn, cpu_pct, missing_pct, tps, even_tps, reads_ps, iops}], in
    the order in which they were.

    cpu_pct: CPU time of t1, of the core. missing_pct, of a core that somebody uses all the time:
    what it did not deliver since other programs ran. even_tps: throughput had nothing been
    missing. reads_ps: records that t1 read from disk, iops: requests of t1 to its volume, both per
    second."""
    found = []
    for p in g.get("phases", ()):
        seconds = p["end_s"] - p["begin_s"]
        said = [row for row in g["said"] if p["begin_s"] < row[0] <= p["end_s"]]
        whole = g["core_share"] * seconds
        core = delivery.Delivered(p["t1_s"] + p["others_s"], whole) \
            if p["greedy"] or p["has_loop"] else None
        tps = statistics.mean(row[1] for row in said) if said else None
        found.append({
            "mode": p["mode"], "greedy": p["greedy"], "has_loop": p["has_loop"],
            "is_turn": p["is_turn"], "cpu_pct": round(100 * p["t1_s"] / whole, 1),
            "missing_pct": delivery.missing_pct(core),
            "tps": _rounded(tps, 1),
            "even_tps": _rounded(core.full(tps) if core else tps, 1),
            "reads_ps": round((said[-1][2] - said[0][2]) / (said[-1][0] - said[0][0]), 1)
            if len(said) > 1 else None,
            "iops": round(p["issued"] / seconds, 1)})
    return found


def turns_of(phases):
    """[(even throughput alone, the same beside all greedy tenants)], turn by turn, of those that
    were measured. phases: of measure_greedy."""
    turns = [p["even_tps"] for p in phases if p["is_turn"]]
    return [pair for pair in zip(turns[::2], turns[1::2]) if all(pair)]


def relative_io_pct(row):
    """Of a row of the ledger. None: more than chance without a single read in the baseline."""
    if row["promised"]:
        return 100 * (row["got"] - row["promised"]) / row["promised"]
    return 0.0 if row["got"] <= CHANCE_READS else None


def judge_greedy(g):
    """Figure 5. What t1 has alone in the mode of the run is 100%."""
    phases = measure_greedy(g)
    first = phases[0]["mode"] if phases else None
    turns = turns_of(phases)
    own_pct = statistics.median(100 * beside / alone for alone, beside in turns) \
        if len(turns) == g["turns"] else None
    of_core = [100 * p["t1_s"] / (p["t1_s"] + p["others_s"]) for p in g.get("phases", ())
               if p["greedy"] and p["mode"] == first]
    ledger = next((row for row in g.get("ledger", ()) if row["vm"] == "t1" and
                   row["resource"] == "memory" and row["num_intervals"]), None)

    def pct(mode):
        """With all greedy tenants, of t1 alone with what the run promises."""
        beside = [row["even_tps"] for row in phases if row["mode"] == mode and
                  row["greedy"] == g["tenants"] and not row["is_turn"]]
        return _rounded(100 * beside[0] / statistics.median(alone for alone, _ in turns)) \
            if turns and beside and beside[0] else None
    return [
        Check.at_least("greedy_tps_pct", _rounded(own_pct), 100 - ALONE_OFF_PCT, "%",
                       "part 2: throughput of t1 beside all greedy tenants, of that alone with the "
                       f"same promise; median of {g['turns']} turns").of_work(),
        *(Check.at_most(f"greedy_{mode.replace('-', '_')}_tps_pct", pct(mode), 100 - LOWER_PCT,
                        "%", f"the same with the promise {mode}: what a reservation is worth")
          for mode in (MAX_ONLY, NONE)),
        Check.at_least("greedy_cpu_pct", _rounded(min(of_core, default=None)),
                       g["cpu_pct"] - CPU_OFF_PCT, "%",
                       f"of the CPU time that the core delivered, {g['cpu_pct']:g} promised, "
                       "beside greedy tenants; the least of all phases"),
        Check.at_most("greedy_relative_io_pct", _rounded(ledger and relative_io_pct(ledger)),
                      RELATIVE_IO_PCT, "%",
                      "reads of t1's engine from disk beyond those of a dedicated cache of "
                      f"{g['reserve_mem_mib']} MiB, as the ledger has them"),
        Check.equal("greedy_memory_violations",
                    ledger and ledger["num_violations"] + ledger["num_unclear"], 0, "intervals",
                    f"of {ledger['num_intervals'] if ledger else 0} in which that promise was "
                    "broken, or which say nothing")
    ], {"greedy": phases, "greedy_turns": turns}


def missing_greedy(g):
    return [row["missing_pct"] for row in measure_greedy(g) if row["greedy"]]


# ---- part 3 ----

def two(rows):
    """What the mode promises, and a maximum only, with which it is compared; {}: not measured."""
    return (rows + [{}, {}])[:2]


def judge_neighbours(n):
    """Table 1: the p99 of each type of transaction, from the arrival on, with what the mode
    promises and with a maximum only."""
    kept, capped = two(n.get("table", []))
    table = {}
    for name, own in sorted((kept.get("classes") or {}).items()):
        other = (capped.get("classes") or {}).get(name, {})
        table[name] = {"p99_us": own["p99_us"], "max_only_p99_us": other.get("p99_us"),
                       "measured": own["measured"], "max_only_measured": other.get("measured")}
    pcts = [100 * row["p99_us"] / row["max_only_p99_us"] if row["p99_us"] and
            row["max_only_p99_us"] else None for row in table.values()]
    measured = [row[name] for row in table.values() for name in ("measured", "max_only_measured")]
    served = [row["committed"] for row in (kept, capped) if row.get("committed") is not None]
    is_whole = len(pcts) == TYPES and None not in measured and len(served) == 2
    cpu = [row["t1_s"] / (row["t1_s"] + row["others_s"]) * 100 if row else None
           for row in two(n.get("flood", []))]
    return [
        Check.at_least("neighbours_cpu_pct", _rounded(cpu[0]), n["cpu_pct"] - CPU_OFF_PCT, "%",
                       f"part 3: of the CPU time that the core delivered, {n['cpu_pct']:g} "
                       f"promised, beside {n['count']} neighbours that compute"),
        Check.at_most("neighbours_p99_pct",
                      _rounded(max(pcts) if is_whole and None not in pcts else None), P99_PCT, "%",
                      "p99 of a type of transaction, from arrival to commit, of that with a "
                      "maximum only; the type with the most").of_work(),
        Check.at_least("neighbours_measured", min(measured) if is_whole else None, LEAST_MEASURED,
                       "transactions", "of a type, on which a p99 rests; the type with the fewest"
                       ).of_work(),
        Check.at_least("neighbours_served_pct",
                       _rounded(100 * min(served) / (n["rate"] * n["seconds"]) if is_whole else
                                None), SERVED_PCT, "%",
                       f"of {n['rate']:g} transactions that arrived per second, with a maximum "
                       "only, too: beyond what it serves p99 would only say how long the run was"
                       ).of_work()
    ], {"neighbours": {"types": table, "cpu_pct": [_rounded(v) for v in cpu],
                       "tps": [_rounded(row.get("tps"), 1) for row in two(n.get("flood", []))],
                       "modes": [row.get("mode") for row in (kept, capped)]}}


def missing_neighbours(n):
    return [delivery.missing_pct(delivery.Delivered(row["t1_s"] + row["others_s"],
                                                    n["core_share"] * row["seconds"]))
            for row in n.get("flood", []) + n.get("table", [])]


# ---- part 4 ----

def measure_overbooked(o):
    """{tenant: {issued, metered, reckoned, idle_intervals, idle_units}}: violations as the meter
    has them and as they follow from what the client saw, in intervals of a second. The meter's end
    at other times than these, so an interval counts as idle if the one before was idle, too."""
    metered, reckoned, found = _looks(o, "looks"), _looks(o, "reckoned"), {}
    for name, looks in metered.items():
        pairs = [(m.grown, r.grown) for m, r in zip(
            promises.intervals(looks), promises.intervals(reckoned.get(name, [])))]
        idle = [now[0] for before, now in zip(pairs, pairs[1:])
                if before[1].busy_s == now[1].busy_s == 0]
        found[name] = {
            "issued": sum(m.issued for m, _ in pairs),
            "metered": round(sum(m.violated for m, _ in pairs), 1),
            "reckoned": round(sum(promises.violated(o["iops"] * r.busy_s, r.issued)
                                  for _, r in pairs), 1),
            "idle_intervals": len(idle),
            "idle_units": round(sum(m.violated for m in idle), 1)}
    return found


def judge_overbooked(o):
    told = measure_overbooked(o)
    off = [abs(t["metered"] / t["reckoned"] - 1) * 100 if t["reckoned"] else None
           for t in told.values()]
    worst = None if not off or None in off else max(off)
    idler = told.get(o["idler"], {})
    return [
        Check.at_least("overbooked_violated",
                       sum(t["reckoned"] for t in told.values()) if told else None, LEAST_VIOLATED,
                       "units", "part 4: promised, due and not issued, as reckoned from what the "
                       "clients saw: what is at stake"),
        Check.at_most("overbooked_meter_off_pct", _rounded(worst), RECKONED_OFF_PCT, "%",
                      "violations as the meter counted them, off those; the tenant with the most"),
        Check.equal("overbooked_idle_violated",
                    idler.get("idle_units") if idler.get("idle_intervals") else None, 0, "units",
                    f"counted in {idler.get('idle_intervals', 0)} intervals without a request")
    ], {"overbooked": told}


JUDGES = {MEET: judge_meet, GREEDY: judge_greedy, NEIGHBOURS: judge_neighbours,
          OVERBOOKED: judge_overbooked}
# Per cent of the CPU time of a core that other programs took, of each time that is compared.
MISSING = {GREEDY: missing_greedy, NEIGHBOURS: missing_neighbours}


def evaluate(run, _samples, _events):
    r, checks = run["reserve"], []
    details = {"mode": r["mode"], "parts": r["parts"]}
    for part in r["parts"]:
        more, told = JUDGES[part](r[part])
        checks += more
        details.update(told)
    missing = [pct for part in r["parts"] if part in MISSING for pct in MISSING[part](r[part])]
    if set(r["parts"]) & set(MISSING):
        checks.append(delivery.check(missing))
    return Verdict(checks + outcome_checks(run), [], details)


def outcome_checks(run):
    """What the engines say of themselves at their end; those that only read can lose nothing."""
    writers, checks = [vm for vm in run["vms"] if vm not in READERS], []
    if run["vms"]:
        checks.append(Check.equal("failed_transactions", total(run, "failed"), 0, "transactions",
                                  "transactions that an engine gave up, over all VMs"))
    if writers:
        checks.append(Check.equal(
            "lost_updates", total({**run, "vms": writers}, "lost_updates"), 0, "updates",
            "committed updates missing from the records at the end"))
    return checks
