# SPDX-License-Identifier: GPL-2.0-or-later
"""The moves that `migrate` makes, and their numbers.

The paper's tables, scaled: a fiftieth of the rows or less, a quarter of the requests, a sixth of
the time, and 20 connections, of which two move per second (SPEED_PCT) as of 200, one if records
are on disk: the algorithm by itself rounds up to one.
ODB-CL, the workload of its tables 9 and 10, is like TPC-C, and so is that of oltp-load here; its
warehouses are a fiftieth (a fifth in the smallest database), each of a tenth of the full size.
"""
import argparse
import os
from dataclasses import asdict, dataclass, replace

from harness.lab.domain import Cell, Vm
from harness.stage.plan import Plan, cpus_of_nodes_and_clients

from ..scenario import Option

ADAPTIVE, ABRUPT, FAST, SLOW = "adaptive", "abrupt", "fixed fast", "fixed slow"
LIMIT_S = 60            # after which all connections that are left move
SPEED_PCT = 200         # of ADAPTIVE, if records go ahead: the target is warm then
# Arguments of `relocate`. The paper's fixed rates are 10 and 3 of 200 connections per second.
ORDERS = {ADAPTIVE: f"adaptive limit-s {LIMIT_S}", ABRUPT: "fast",
          FAST: f"fixed 4 limit-s {LIMIT_S}", SLOW: f"fixed 1 limit-s {LIMIT_S}"}

CONNECTIONS = 20
ROW_BYTES = 1024
SMALL, MIDDLE, LARGE = 20000, 100000, 200000    # rows
RATE, HIGH_RATE = 400, 1000                     # requests per second
COUNT_PCT = 10          # of all requests: increments, by which lost updates are found
TENANTS = 4             # other databases, half of them on each node
TENANT_ROWS, TENANT_RATE, TENANT_CONNECTIONS = 5000, 50, 5
TENANT_WAREHOUSES = 1   # of each, beside a database that is like TPC-C

ITEMS, CUSTOMERS = 10000, 300   # of the TPC-C-like workload: those of a warehouse, a district
DISTRICTS = 10
# Of one of the records that the engine counts, keys and fields of hashes, with its name: on
# average, by what a source sent of tables that had just been loaded (relocate-status, records).
TPCC_RECORD_BYTES = 94
WAREHOUSE_KEYS = 100000         # keys and fields, with room to grow

WARM_S, STEADY_S = 2.0, 6.0     # before the move: not measured; measured
TAIL_S = 5.0                    # measured after the database has moved
PATIENCE_S = 30.0               # longest for the rest, once all connections have moved

# With --guests: of the host, the source and the target; what emulated CPUs can do.
NETWORK, GUEST_ADDRESSES = "10.77.0.1/24", ("10.77.0.2/24", "10.77.0.3/24")
GUEST_MEMORY_MIB, GUEST_DISK_MIB = 384, 1024
GUEST_ROWS, GUEST_RATE = 5000, 40

MIXES = ((100, 0, 0, 0), (80, 20, 0, 0), (20, 80, 0, 0), (20, 40, 20, 20))
READ_MOSTLY, ALL_KINDS = MIXES[1], MIXES[3]
MIX_CACHED_PARTLY = (60, 20, 10, 10)


@dataclass(frozen=True)
class Case:
    """One move."""
    table: int                  # of the paper
    mode: str
    mix: tuple                  # select, update, insert, delete, in per cent; (): like TPC-C
    rows: int                   # 0: like TPC-C
    rate: int
    memory_mib: int = 0         # for records, on each node; 0: no bound
    tenants: int = 0
    warehouses: int = 0         # like TPC-C; 0: rows
    connections: int = CONNECTIONS
    paper: str = ""             # its row: migration and impact time, failed, response times
    is_judged: bool = False     # must meet the bounds
    is_usual: bool = False      # without --full and --tables

    @property
    def name(self):
        """One that an ablation replaces keeps its name."""
        mode = ADAPTIVE if self.is_judged else self.mode
        words = [f"t{self.table}", mode.replace(" ", "-"), "-".join(map(str, self.mix)) or
                 f"tpcc-{self.warehouses}wh-{self.rate}"]
        return "_".join(words + ([f"{self.memory_mib}mib"] if self.memory_mib else []))


def _table4():
    paper = {ABRUPT: "17.0 s, 38 s, 8.3 % failed, 24.2 to 1932 ms",
             FAST: "30.8 s, 41 s, 2.0 % failed, 24.3 to 369 ms",
             SLOW: "73.6 s, 31 s, 0 failed, 24.3 to 41.5 ms",
             ADAPTIVE: "62.5 s, 38 s, 0 failed, 24.2 to 32.4 ms"}
    return [Case(4, mode, READ_MOSTLY, LARGE, HIGH_RATE, paper=told,
                 is_usual=mode in (ABRUPT, ADAPTIVE)) for mode, told in paper.items()]


def _adaptive(table, rows, rate, papers, usual=()):
    return [Case(table, ADAPTIVE, mix, rows, rate, paper=told, is_usual=mix in usual)
            for mix, told in zip(MIXES, papers)]


def _like_tpcc(table, warehouses, rate, told, **more):
    return Case(table, ADAPTIVE, (), 0, rate, warehouses=warehouses, paper=told, **more)


CASES = tuple(replace(case, is_judged=case.mode == ADAPTIVE) for case in (
    *_table4(),
    *_adaptive(5, SMALL, RATE, (
        "24.5 s, 11 s, 0 failed, 7.7 to 9.1 ms; 2.0 GB of 2.1, 0.0 back; CPU 1.01",
        "40.4 s, 56 s, 0 failed, 9.0 to 11.9 ms; 4.1 GB of 2.1, 0.1 back; CPU 1.19",
        "42.2 s, 91 s, 0 failed, 11.9 to 16.3 ms; 6.1 GB of 2.1, 0.4 back; CPU 1.13",
        "42.8 s, 123 s, 0 failed, 7.5 to 10.7 ms; 5.8 GB of 2.1, 0.6 back; CPU 1.19"),
        usual=(READ_MOSTLY, ALL_KINDS)),
    *_adaptive(6, SMALL, HIGH_RATE, (
        "29.1 s, 10 s, 0 failed, 10.9 to 11.9 ms; 2.1 GB of 2.1, 0.0 back; CPU 0.98",
        "43.6 s, 38 s, 0 failed, 14.0 to 17.3 ms; 6.3 GB of 2.1, 0.4 back; CPU 1.11",
        "54.3 s, 73 s, 0 failed, 15.8 to 23.6 ms; 10.6 GB of 2.1, 1.9 back; CPU 1.16",
        "54.2 s, 119 s, 0 failed, 9.4 to 15.5 ms; 10.2 GB of 2.1, 4.1 back; CPU 1.36")),
    *_adaptive(7, LARGE, HIGH_RATE, (
        "45.3 s, 21 s, 0 failed, 21.7 to 26.2 ms; 15.8 GB of 16.1, 0.0 back; CPU 1.02",
        "62.5 s, 38 s, 0 failed, 24.2 to 32.4 ms; 21.1 GB of 16.1, 0.3 back; CPU 1.10",
        "86.0 s, 153 s, 0 failed, 30.3 to 40.1 ms; 33.7 GB of 16.1, 1.3 back; CPU 1.28",
        "87.7 s, 104 s, 0 failed, 16.8 to 29.5 ms; 33.6 GB of 16.1, 4.0 back; CPU 1.55")),
    *(Case(8, ADAPTIVE, MIX_CACHED_PARTLY, MIDDLE, HIGH_RATE, mib, paper=told,
           is_usual=mib == 64)
      for mib, told in ((0, "47.4 s, 327 s, 0 failed, 2.6 to 3.1 ms"),
                        (64, "40.6 s, 49 s, 0 failed, 3.1 to 4.2 ms"),
                        (32, "43.3 s, 43 s, 0 failed, 3.2 to 4.3 ms"),
                        (16, "39.8 s, 49 s, 0 failed, 3.2 to 4.5 ms"))),
    _like_tpcc(9, 2, 25, "22.2 s, 147 s, 0 failed, 4.8 to 7.2 ms; 0.9 GB, 0.0 back; CPU 1.06",
               connections=10),
    _like_tpcc(9, 10, 250, "54.1 s, 287 s, 0 failed, 6.0 to 9.0 ms; 19.1 GB, 0.4 back; CPU 1.40"),
    _like_tpcc(9, 20, 250, "54.1 s, 302 s, 0 failed, 7.5 to 11.6 ms; 21.4 GB, 0.3 back; CPU 1.45"),
    _like_tpcc(9, 20, 625, "72.2 s, 166 s, 0 failed, 7.6 to 13.9 ms; 31.5 GB, 1.8 back; CPU 1.53"),
    *(Case(10, mode, READ_MOSTLY, SMALL, RATE, tenants=TENANTS, paper=told, is_usual=True)
      for mode, told in (
          (ADAPTIVE, "91.1 s, 370 s, 0 failed, 12.8 to 19.8 ms; 18.5 GB of 23.8, 0.7 back; "
                     "CPU 1.07"),
          (ABRUPT, ""))),
    _like_tpcc(10, 10, 250, "91.1 s, 370 s, 0 failed, 12.8 to 19.8 ms; 18.5 GB of 23.8, 0.7 back; "
               "CPU 1.07", tenants=TENANTS),
))
TABLES = tuple(sorted({case.table for case in CASES}))


def tables(text):
    """For argparse: numbers of tables, joined with commas."""
    try:
        chosen = sorted({int(word) for word in text.split(",")})
    except ValueError:
        chosen = [0]
    if not set(chosen) <= set(TABLES):
        raise argparse.ArgumentTypeError(f"{text}: there are {', '.join(map(str, TABLES))}")
    return chosen


GUESTS = Option("--guests", "each node is a VM with a disk and a network device; two moves, scaled "
                "down", {"action": "store_true"}, lambda value: "-guests")
OPTIONS = (
    Option("--full", "all moves of all tables, some 20 minutes", {"action": "store_true"},
           lambda value: "-full"),
    Option("--tables", "all moves of these of the paper's tables: " +
           ", ".join(map(str, TABLES)), {"type": tables, "metavar": "N,N"},
           lambda value: "-tables-" + "-".join(map(str, value))),
    GUESTS)


def cases_of(a):
    if a.guests:
        chosen = [replace(case, rows=GUEST_ROWS, rate=GUEST_RATE) for case in CASES
                  if case.table == 5 and case.is_usual]
    elif a.tables:
        chosen = [case for case in CASES if case.table in a.tables]
    else:
        chosen = [case for case in CASES if a.full or case.is_usual]
    # Throttling is off: connections move at the base rate.
    return [replace(case, mode=ABRUPT) if a.ablate and case.is_judged else case
            for case in chosen]


def of(a):
    cpus = sorted(os.sched_getaffinity(0))
    host = {"spec": "auto", "emulated": False, "sockets": 1, "cores": min(2, len(cpus)),
            "threads": 1, "share": 1.0, "real_cpus": len(cpus)}
    nodes, clients = cpus_of_nodes_and_clients()
    return Plan(host, "", [], 0.0, more={"cases": cases_of(a), "cpus": nodes,
                                         "client_cpus": clients})


def guests():
    """The two VMs."""
    return [Vm(name, [Cell(1, 1, 0)], GUEST_MEMORY_MIB, address=address,
               disks_mib=[GUEST_DISK_MIB], disks_in_memory=True,
               options={"name": name, "shell": "ttyS1", "monitor": "0", "module": "0",
                        "cold": "vda"})
            for name, address in zip(("source", "target"), GUEST_ADDRESSES)]


def order_of(case):
    """What the source is told. With a bound on memory records are on disk, and none go ahead."""
    is_warm = case.mode == ADAPTIVE and not case.memory_mib
    return ORDERS[case.mode] + (f" speed {SPEED_PCT}" if is_warm else "")


def mix_words(mix):
    """For oltp-load, with the increments."""
    parts = [f"{kind}={weight * (100 - COUNT_PCT) // 10}" for kind, weight in zip(
        ("select", "update", "insert", "delete"), mix) if weight]
    return ",".join(parts + [f"count={COUNT_PCT * 10}"])


def load_options(mix, rows, warehouses):
    """What oltp-load is told of a workload."""
    if warehouses:
        return ["--workload", "tpcc", "--warehouses", str(warehouses), "--items", str(ITEMS),
                "--customers", str(CUSTOMERS)]
    return ["--rows", str(rows), "--mix", mix_words(mix)]


def keys(rows, warehouses):
    """What a server expects: inserts add to the rows, and counters are keys, too."""
    return warehouses * WAREHOUSE_KEYS if warehouses else 2 * rows + 100000


def size_words(rows, warehouses):
    """For people."""
    return f"{warehouses} warehouses" if warehouses else f"{rows:,} rows"


def told(case):
    """For run.json."""
    return {**asdict(case), "name": case.name, "mix": list(case.mix)}
