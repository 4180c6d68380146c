# SPDX-License-Identifier: GPL-2.0-or-later
"""cores.csv: what the cores of an emulated host were used for, in intervals."""
import csv
from dataclasses import dataclass, field

from .schema import SchemaError

COLUMNS = ["t_s", "seconds", "core", "busy", "due", "vms"]


@dataclass
class Row:
    """A core in an interval. Parts of what the core can do, so 1 is all of it."""
    t_s: float              # the interval's end
    seconds: float
    core: int
    busy: float
    due: float              # busy, had no other program run there
    vms: dict = field(default_factory=dict)     # VM: its part of busy


def active(row, least):
    """VMs that have computed there."""
    return [vm for vm, part in row.vms.items() if part >= least]


def is_hot(row, hot, least):
    """Hot and oversubscribed, as the paper counts: used so much, by two VMs or more. A core that
    would have been used so much, had other programs not taken of it, is as hot."""
    return max(row.busy, row.due) >= hot and len(active(row, least)) >= 2


def write(path, rows):
    with open(path, "w", newline="", encoding="utf-8") as f:
        w = csv.writer(f, lineterminator="\n")
        w.writerow(COLUMNS)
        for r in rows:
            vms = "/".join(f"{vm}={part:.4f}" for vm, part in r.vms.items())
            w.writerow([f"{r.t_s:.3f}", f"{r.seconds:.3f}", r.core, f"{r.busy:.4f}",
                        f"{r.due:.4f}", vms])


def read(path):
    with open(path, newline="", encoding="utf-8") as f:
        lines = csv.reader(f)
        if next(lines, None) != COLUMNS:
            raise SchemaError(f"{path}: the first line must be {','.join(COLUMNS)}")
        try:
            return [Row(float(t), float(seconds), int(core), float(busy), float(due),
                        {k: float(v) for k, v in (p.split("=") for p in vms.split("/") if p)})
                    for t, seconds, core, busy, due, vms in lines]
        except ValueError as e:
            raise SchemaError(f"{path}:{lines.line_num}: {e}") from None
