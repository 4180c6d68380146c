# SPDX-License-Identifier: GPL-2.0-or-later
"""What a run leaves behind: samples.csv, history.jsonl, run.json and summary.json.

The first three are recorded while the scenario runs and are all that a verdict may look at;
summary.json and report.html are computed from them, now or later (scripts/report).
"""
import csv
import json
import os
from dataclasses import dataclass, field, fields
from typing import Optional

SAMPLES, HISTORY, RUN = "samples.csv", "history.jsonl", "run.json"
CORES = "cores.csv"         # of some scenarios
LEDGER = "ledger.json"      # the same: the answer of `ebbctl --json ledger` at the end
SUMMARY, REPORT = "summary.json", "report.html"

ACCELERATORS = ("kvm", "tcg", "none")     # none: no VM took part
VERDICTS = ("pass", "fail", "not judged")


class SchemaError(Exception):
    """A file of a run does not say what it must; the text names file, place and value."""


@dataclass
class Sample:
    """One VM at one moment, that at which the agent looked. t_s counts from the start of the
    scenario. None: not known."""
    t_s: float
    vm: str
    cpus_held: int
    cpus_limit: int
    mem_held_bytes: int
    mem_limit_bytes: int
    tps: Optional[float]            # committed transactions per second, over the last second
    aborts_ps: Optional[float]      # attempts undone and retried, the same
    p50_us: Optional[int]
    p99_us: Optional[int]
    p95_us: Optional[int] = None
    state: str = "running"          # as ebbctl says: running, stopped, unmanaged
    driver: int = 0                 # 1: the guest's driver is up
    workers: int = 0                # engine threads that run transactions
    cpus_target: int = 0            # what the policy wants the VM to hold in the end
    committed: Optional[int] = None  # counters since the engine started
    aborted: Optional[int] = None
    failed: Optional[int] = None
    report_age_ms: Optional[int] = None  # how old the guest's last report is
    nodes_held: str = ""            # CPUs held per guest node, joined with "/"
    host_speed: Optional[float] = None  # of the machine over the last second (speed.py)
    mem_nodes_held: str = ""        # bytes of pool memory held per guest node, joined with "/"
    host_rss_bytes: Optional[int] = None    # the host's memory behind the pools, from smaps
    cold_reads: Optional[int] = None    # records read from disk since the engine started
    cold_records: Optional[int] = None  # that are on disk
    # The engine's own report of one of its intervals, by its own clock; on one sample each.
    engine_t_s: Optional[float] = None  # the interval's end, seconds since the engine ran
    engine_tps: Optional[float] = None
    offered_ps: Optional[float] = None  # transactions that arrived per second
    queue: Optional[int] = None         # that waited at its end
    theta: Optional[float] = None       # Zipf parameter
    # Of a slice (sliced_run.py): which of the two set-ups ran, for which time, and with what.
    variant: str = ""
    turn: Optional[int] = None
    tenants: Optional[int] = None
    remote_ops: Optional[int] = None    # of each transaction
    # Since the sample before, how long one of the machine's CPUs was not there (speed.py).
    host_pause_ms: Optional[float] = None
    # CPU time of the VM's vCPUs on its cores, and what they were due there (delivery.py): since the
    # run began, or of a slice within it.
    cpu_ms: Optional[float] = None
    cpu_due_ms: Optional[float] = None
    # When that was read, and what the engine and the machine say: later, if the machine is busy.
    read_t_s: Optional[float] = None

    @property
    def read_at(self):
        return self.t_s if self.read_t_s is None else self.read_t_s


COLUMNS = [f.name for f in fields(Sample)]
REQUIRED_COLUMNS = ["t_s", "vm", "cpus_held", "cpus_limit", "mem_held_bytes", "mem_limit_bytes",
                    "tps", "aborts_ps", "p50_us", "p99_us"]
_TEXT = {"vm", "state", "nodes_held", "mem_nodes_held", "variant"}
_FLOAT = {"t_s", "tps", "aborts_ps", "host_speed", "engine_t_s", "engine_tps", "offered_ps",
          "theta", "host_pause_ms", "cpu_ms", "cpu_due_ms", "read_t_s"}
_OPTIONAL = {f.name for f in fields(Sample) if f.type == Optional[int] or f.type == Optional[float]}


@dataclass
class Event:
    """One line of the agent's history. t_s counts from the start of the scenario."""
    t_s: float
    vm: str
    event: str
    cpus: int = 0
    node: Optional[int] = None
    reason: str = ""
    total_ms: Optional[float] = None
    phases_ms: dict = field(default_factory=dict)  # agent, libvirt, place
    bytes: int = 0                  # of memory, in mem_* events


@dataclass
class Check:
    """One comparison of a verdict. value None: could not be measured, which is never ok."""
    name: str
    value: Optional[float]
    unit: str
    bound: str
    ok: bool
    text: str = ""                  # what is compared, for readers
    # It compares work per CPU time, which says nothing where too much CPU time was missing.
    counts_work: bool = False

    def of_work(self):
        self.counts_work = True
        return self

    @staticmethod
    def at_most(name, value, bound, unit, text=""):
        return Check(name, value, unit, f"<= {bound:g}", value is not None and value <= bound, text)

    @staticmethod
    def at_least(name, value, bound, unit, text=""):
        return Check(name, value, unit, f">= {bound:g}", value is not None and value >= bound, text)

    @staticmethod
    def equal(name, value, bound, unit, text=""):
        return Check(name, value, unit, f"== {bound:g}", value is not None and value == bound, text)


def forget(folder):
    """Results of an earlier run must not be taken for those of a new one."""
    for name in (SAMPLES, HISTORY, RUN, CORES, LEDGER, SUMMARY, REPORT):
        if os.path.exists(os.path.join(folder, name)):
            os.unlink(os.path.join(folder, name))


def write_samples(path, samples):
    with open(path, "w", newline="", encoding="utf-8") as f:
        w = csv.writer(f, lineterminator="\n")
        w.writerow(COLUMNS)
        for s in samples:
            w.writerow([_text_of(name, getattr(s, name)) for name in COLUMNS])


def _text_of(name, value):
    if value is None:
        return ""
    if name in _FLOAT:
        return f"{value:.3f}"
    return str(value)


def read_samples(path):
    """Reads samples.csv; columns beyond the ones known here are left alone."""
    with open(path, newline="", encoding="utf-8") as f:
        rows = csv.reader(f)
        head = next(rows, None)
        if head is None or head[:len(REQUIRED_COLUMNS)] != REQUIRED_COLUMNS:
            raise SchemaError(f"{path}: the first line must start with "
                              f"{','.join(REQUIRED_COLUMNS)}, got {','.join(head or [])!r}")
        known = [(i, name) for i, name in enumerate(head) if name in COLUMNS]
        return [_sample_of(path, rows.line_num, row, known, len(head)) for row in rows]


def _sample_of(path, line, row, known, width):
    if len(row) != width:
        raise SchemaError(f"{path}:{line}: {len(row)} fields where the first line has {width}")
    values = {}
    for i, name in known:
        text = row[i]
        if name in _TEXT:
            values[name] = text
        elif text == "" and name in _OPTIONAL:
            values[name] = None
        else:
            try:
                values[name] = float(text) if name in _FLOAT else int(text)
            except ValueError:
                raise SchemaError(f"{path}:{line}: {name} is {text!r}, not a number") from None
    return Sample(**values)


def write_history(path, events):
    with open(path, "w", encoding="utf-8") as f:
        for e in events:
            f.write(json.dumps(e.__dict__, ensure_ascii=False) + "\n")


def read_history(path):
    known = {f.name for f in fields(Event)}
    events = []
    with open(path, encoding="utf-8") as f:
        for line, text in enumerate(f, 1):
            try:
                row = json.loads(text)
                events.append(Event(**{k: v for k, v in row.items() if k in known}))
            except (ValueError, TypeError, AttributeError) as e:
                raise SchemaError(f"{path}:{line}: {e}") from None
    return events


def read_json(path):
    with open(path, encoding="utf-8") as f:
        try:
            return json.load(f)
        except ValueError as e:
            raise SchemaError(f"{path}: {e}") from None


def write_json(path, value):
    """Replaces the file in one step: a reader sees the old or the new one, never half."""
    tmp = path + ".new"
    with open(tmp, "w", encoding="utf-8") as f:
        json.dump(value, f, indent=2, ensure_ascii=False)
        f.write("\n")
    os.replace(tmp, path)


_DISTRIBUTION = {"median": (int, float, type(None)), "p95": (int, float, type(None)), "n": (int,)}
_SUMMARY = {
    "scenario": (str,), "verdict": (str,), "checks": (list,), "accelerator": (str,),
    "host": (dict,), "seed": (int,), "ablate": (bool,), "time_scale": (int, float),
    "failed_transactions": (int, type(None)), "lost_updates": (int, type(None)),
    "cpu_add_ms": (dict,), "cpu_remove_ms": (dict,), "share_convergence_ms": (dict,),
    "versions": (dict,), "paper": (list,),
}
_CHECK = {"name": (str,), "value": (int, float, type(None)), "unit": (str,), "bound": (str,),
          "ok": (bool,)}


CPU_MISSING = "cpu_missing_pct"     # the check of delivery.py


def verdict_of(checks):
    """From checks as dictionaries. A run is not judged if so much CPU time was missing that work
    per CPU time says nothing, unless a check fails that has nothing to do with that."""
    bad = [c for c in checks if not c["ok"]]
    if not bad and checks:
        return "pass"
    missing = [c for c in bad if c["name"] == CPU_MISSING and c["value"] is not None]
    if missing and all(c in missing or c.get("counts_work") for c in bad):
        return "not judged"
    return "fail"


def summary_problems(summary):
    """The errors of a summary, as a list of sentences; empty when it is well-formed."""
    problems = _typed("summary", summary, _SUMMARY)
    if problems:
        return problems
    if summary["verdict"] not in VERDICTS:
        problems.append(f"verdict is {summary['verdict']!r}, not one of {VERDICTS}")
    if summary["accelerator"] not in ACCELERATORS:
        problems.append(f"accelerator is {summary['accelerator']!r}, not one of {ACCELERATORS}")
    for name in ("cpu_add_ms", "cpu_remove_ms", "share_convergence_ms"):
        problems += _typed(name, summary[name], _DISTRIBUTION)
    for i, check in enumerate(summary["checks"]):
        problems += _typed(f"checks[{i}]", check, _CHECK)
    if not problems:
        if not summary["checks"]:
            problems.append("checks is empty: a verdict without a check says nothing")
        elif summary["verdict"] != verdict_of(summary["checks"]):
            problems.append(f"verdict is {summary['verdict']!r}, but "
                            f"{sum(not c['ok'] for c in summary['checks'])} checks are not ok")
    return problems


def _typed(where, value, wanted):
    if not isinstance(value, dict):
        return [f"{where} is not an object"]
    problems = []
    for name, types in wanted.items():
        if name not in value:
            problems.append(f"{where}.{name} is missing")
        elif not isinstance(value[name], types) or \
                (isinstance(value[name], bool) and bool not in types):
            problems.append(f"{where}.{name} is {value[name]!r}, of the wrong type")
    return problems
