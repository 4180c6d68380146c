# SPDX-License-Identifier: GPL-2.0-or-later
"""The engine by itself: which programs are run, and what follows from what they say.

A case is one program with its options. A round runs each case once, in the same order, and is kept
as {case name: what the program measured}; everything else is computed from the rounds.
"""
import dataclasses
import json

from . import metrics

SCHEMES = ("no_wait", "wait_die", "wound_wait")
# TPC-C-like: warehouses and transactions in percent, by name.
WAREHOUSES = 4
MIXES = {"NewOrder+Payment": "50,50,0,0,0", "full mix": "45,43,4,4,4"}
THETAS = {"uniform": 0, "theta 0.6": 0.6, "theta 0.99": 0.99}
CONTENDED = "theta 0.99"
OPERATIONS, UPDATES = 10, 0.5
ROW_BYTES = 1024
# A table needs its rows, a fifteenth of that as index, and something must be left.
BYTES_PER_ROW, SPARE_BYTES = 1100, 1 << 30
# Below this share of their CPUs, workers were not alone on the machine.
UNDISTURBED = 0.95
SHORT_S = 0.05

MISS, LOAD, COLD_LOAD = "miss bound", "load, per core", "load, memory as it comes"
SHARE, CROWDED = "of the miss bound", "2x workers to best"


@dataclasses.dataclass(frozen=True)
class Settings:
    """What must be the same in all rounds of one result."""
    cpus: int
    rows: int
    load_rows: int
    seconds: float
    schemes: tuple = SCHEMES

    def cores(self):
        """Numbers of cores to measure with: the powers of two, and all."""
        return sorted({1 << i for i in range(self.cpus.bit_length())} | {self.cpus})


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    program: str
    options: tuple


def fitting_rows(rows, available_bytes):
    """As many of the rows as there is memory for."""
    return max(1, min(rows, (available_bytes - SPARE_BYTES) // BYTES_PER_ROW))


def ycsb_name(scheme, contention, workers):
    return f"ycsb {scheme} {contention} {workers}"


def tpcc_name(scheme, mix, workers, warehouses=WAREHOUSES):
    return f"tpcc {scheme} {mix}, {warehouses} warehouses {workers}"


def miss_name(threads):
    return f"miss {threads}"


def load_name(threads):
    return f"load {threads}"


def cases(s):
    """In the order in which a round runs them. A core count's bound comes right before what is
    held against it."""
    found = []
    for n in s.cores():
        found.append(Case(miss_name(n), "oltp-miss-bound", options(
            records=s.rows, accesses=OPERATIONS, update=UPDATES, threads=n,
            seconds=s.seconds)))
        found += [ycsb(s, scheme, contention, n) for contention in THETAS for scheme in s.schemes]
        found += [tpcc(s, scheme, mix, n) for mix in MIXES for scheme in s.schemes]
    if s.cpus > 1:
        found += [tpcc(s, scheme, mix, s.cpus, 1) for mix in MIXES for scheme in s.schemes]
    found += [ycsb(s, scheme, CONTENDED, 2 * s.cpus, "--no-pin") for scheme in s.schemes]
    return found + [Case(load_name(n), "oltp-bench", options(
        records=s.load_rows, load_threads=n, seconds=SHORT_S) + ("--warm-memory",))
                    for n in sorted({1, s.cpus})]


def ycsb(s, scheme, contention, workers, *more):
    return Case(ycsb_name(scheme, contention, workers), "oltp-bench", options(
        records=s.rows, operations=OPERATIONS, update=UPDATES, theta=THETAS[contention],
        cc=scheme, threads=workers, seconds=s.seconds) + more)


def tpcc(s, scheme, mix, workers, warehouses=WAREHOUSES):
    return Case(tpcc_name(scheme, mix, workers, warehouses), "oltp-bench", options(
        workload="tpcc", warehouses=warehouses, tpcc_mix=MIXES[mix], cc=scheme, threads=workers,
        seconds=s.seconds))


def options(**values):
    return ("--json",) + tuple(f"--{name.replace('_', '-')}={value}"
                               for name, value in values.items())


class Wrong(Exception):
    """A program did not do what it should."""


def parse(case, text):
    """What a program measured, from its output."""
    told = json.loads(text)
    if case.program == "oltp-miss-bound":
        return {"tps": told["tps"], "cpu_share": told["cpu_share"],
                "rows_ps": told["records"] / told["fill_seconds"]}
    for field in ("failed_transactions", "lost_updates"):
        if told.get(field):
            raise Wrong(f"{case.name}: {field} is {told[field]}")
    workers = next((int(o.split("=")[1]) for o in case.options if o.startswith("--threads=")), 1)
    return {"tps": told["tps"], "aborts_ps": told["aborts_ps"], "p99_us": told["p99_us"],
            "cpu_share": told["worker_cpu_seconds"] / told["seconds"] / workers,
            "rows_ps": told["load"].get("records", 0) / told["load"]["seconds"]}


def cores_size(n):
    return "1 core" if n == 1 else f"{n} cores"


def scaling_name(n):
    return f"{n} cores to 1"


def rows_of(s, rounds):
    """The rounds as metrics. Ratios are those within a round."""
    rate, percent = metrics.Values("K/s"), metrics.Values("%")
    times, rows = metrics.Values("x"), metrics.Values("M rows/s")
    for r in rounds:
        for n in s.cores():
            _note_cores(s, r, n, rate, percent)
        for n in s.cores()[1:]:
            _note_scaling(s, r, n, times)
        _note_crowd(s, r, rate, percent)
        _note_tpcc(s, r, rate)
        for n in sorted({1, s.cpus}):
            size = cores_size(n)
            rows.note(LOAD, size, "engine", r[load_name(n)]["rows_ps"] / n / 1e6)
            rows.note(COLD_LOAD, size, "memory alone", r[miss_name(n)]["rows_ps"] / n / 1e6)
        cold = r[ycsb_name(s.schemes[0], "uniform", s.cpus)]["rows_ps"]
        rows.note(COLD_LOAD, cores_size(s.cpus), "engine", cold / s.cpus / 1e6)
    return [m for values in (rate, percent, times, rows) for m in values.metrics()]


def _note_cores(s, r, n, rate, percent):
    size, bound = cores_size(n), r[miss_name(n)]["tps"]
    for contention in THETAS:
        for scheme in s.schemes:
            rate.note(f"ycsb {contention}", size, scheme,
                      r[ycsb_name(scheme, contention, n)]["tps"] / 1e3)
        if contention == "uniform":
            rate.note(f"ycsb {contention}", size, MISS, bound["all"] / 1e3)
    for lines in ("header", "record"):
        rate.note(f"{MISS}: {lines}", size, "machine", bound[lines] / 1e3)
    for scheme in s.schemes:
        tps = r[ycsb_name(scheme, "uniform", n)]["tps"]
        percent.note(SHARE, size, scheme, 100 * tps / bound["all"])
        percent.note(f"{SHARE}: header", size, scheme, 100 * tps / bound["header"])


def _note_scaling(s, r, n, times):
    for contention in THETAS:
        for scheme in s.schemes:
            one, all_n = (r[ycsb_name(scheme, contention, i)]["tps"] for i in (1, n))
            times.note(scaling_name(n), contention, scheme, all_n / one)
    times.note(scaling_name(n), "uniform", MISS,
               r[miss_name(n)]["tps"]["all"] / r[miss_name(1)]["tps"]["all"])


def _note_crowd(s, r, rate, percent):
    for scheme in s.schemes:
        crowd = r[ycsb_name(scheme, CONTENDED, 2 * s.cpus)]["tps"]
        best = max(r[ycsb_name(scheme, CONTENDED, n)]["tps"] for n in s.cores())
        rate.note(f"ycsb {CONTENDED}", f"{2 * s.cpus} workers", scheme, crowd / 1e3)
        percent.note(CROWDED, CONTENDED, scheme, 100 * crowd / best)


def _note_tpcc(s, r, rate):
    for mix in MIXES:
        for scheme in s.schemes:
            for n in s.cores():
                rate.note(f"TPC-C-like {mix}", cores_size(n), scheme,
                          r[tpcc_name(scheme, mix, n)]["tps"] / 1e3)
            if s.cpus > 1:
                rate.note(f"TPC-C-like {mix}, 1 warehouse", cores_size(s.cpus), scheme,
                          r[tpcc_name(scheme, mix, s.cpus, 1)]["tps"] / 1e3)


def bounds(s, rows):
    """What the engine is meant to reach, with the first of the schemes."""
    judged = s.schemes[0]
    found = [
        metrics.bound(rows, ("ycsb uniform", "1 core", judged), "median", ">= 450",
                      f"10 operations, half of them updates, 1 KiB rows, uniform, {judged}, one "
                      "core, K/s"),
        metrics.bound(rows, (SHARE, "1 core", judged), "median", ">= 65",
                      "the same, % of the miss bound (index, header and field)"),
    ]
    if s.cpus > 1:
        found.append(metrics.bound(rows, (scaling_name(2), "uniform", judged), "median", ">= 1.9",
                                   "two cores to one"))
    for mix, least in (("NewOrder+Payment", 150), ("full mix", 60)):
        found.append(metrics.bound(rows, (f"TPC-C-like {mix}", "1 core", judged), "median",
                                   f">= {least}", f"TPC-C-like, {WAREHOUSES} warehouses, {mix}, "
                                   f"{judged}, one core, K/s"))
    best = max((m for m in rows if m["name"] == CROWDED), key=lambda m: m["median"])
    found.append(metrics.bound(rows, (CROWDED, CONTENDED, best["variant"]), "median", ">= 80",
                               "theta 0.99, two workers per core to the best number of cores, "
                               f"best scheme ({best['variant']}), %"))
    return found + [metrics.bound(rows, (LOAD, cores_size(n), "engine"), "median", ">= 1",
                                  f"rows loaded by {n} of the cores, M/s per core")
                    for n in sorted({1, s.cpus})]


def is_disturbed(case, measured):
    """Others had CPUs that the case was meant to have alone. A load is over before its workers
    run, and says nothing about that."""
    return ("--no-pin" not in case.options and not case.name.startswith("load") and
            measured["cpu_share"] < UNDISTURBED)


def notes(s, rounds):
    of = {c.name: c for c in cases(s)}
    runs = [(of[name], r) for one in rounds for name, r in one.items()]
    disturbed = sum(is_disturbed(case, r) for case, r in runs)
    return [
        f"ycsb: {s.rows} rows of {ROW_BYTES} bytes, {OPERATIONS} operations, half of them updates "
        f"of a field of 100 bytes, {s.seconds:g} s, workers pinned. Each round runs each case "
        "once; ratios are those of runs in the same round.",
        "miss bound: the cache lines that such a transaction has to touch (index bucket, header of "
        "the record, field), prefetched in a batch, with nothing else done; header, record: "
        "without the other lines.",
        f"TPC-C-like: {WAREHOUSES} warehouses (or 1), {s.seconds:g} s; NewOrder+Payment: half of "
        "each; full mix: 45% NewOrder, 43% Payment, 4% each of the others. All transactions count.",
        f"2x workers to best: {2 * s.cpus} workers that are not pinned, to the best of "
        f"{', '.join(map(str, s.cores()))} pinned ones, at theta 0.99.",
        f"load: {s.load_rows} rows by ordinary transactions, into memory that the process has "
        f"written to before; as it comes: {s.rows} rows into memory that it has not; memory "
        "alone: only writing as many bytes to such memory.",
        f"A run whose workers had less than {UNDISTURBED:.0%} of their CPUs is done again, three "
        f"times at most; {disturbed} of {len(runs)} remained so.",
    ]
