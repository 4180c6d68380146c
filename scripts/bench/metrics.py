# SPDX-License-Identifier: GPL-2.0-or-later
"""The shape that every benchmark writes: out/<benchmark>/summary.json.

benchmark, title    what was measured
accelerator, host   where: kvm or tcg; {spec, emulated, cpus, memory_gib}
versions            of everything that took part
started_at, duration_s, notes[]
metrics[]           {name, size, variant, median, p99, unit, n, ratio_to_ebb, failed}
bounds[]            {text, value, bound, ok}: what the numbers are meant to hold

A metric is one thing measured n times. Its ratio is its median over that of the variant "ebb" of
the same name and size, null where there is none. `failed` counts attempts that gave no value.
"""
import math
import statistics

BASE = "ebb"
FIELDS = {"name": (str,), "size": (str,), "variant": (str,), "median": (int, float, type(None)),
          "p99": (int, float, type(None)), "unit": (str,), "n": (int,),
          "ratio_to_ebb": (int, float, type(None)), "failed": (int,)}
SUMMARY = {"benchmark": (str,), "title": (str,), "accelerator": (str,), "host": (dict,),
           "versions": (dict,), "started_at": (str,), "duration_s": (int, float),
           "notes": (list,), "metrics": (list,), "bounds": (list,)}


class Values:
    """Measured values, by what they are of."""

    def __init__(self, unit="ms"):
        self.unit = unit
        self.of = {}            # (name, size, variant): values, in the order of first sight
        self.failed = {}

    def note(self, name, size, variant, value):
        self.of.setdefault((name, size, variant), []).append(value)

    def fail(self, name, size, variant):
        key = (name, size, variant)
        self.of.setdefault(key, [])
        self.failed[key] = self.failed.get(key, 0) + 1

    def metrics(self):
        return [self._metric(*key) for key in self.of]

    def _metric(self, name, size, variant):
        values = self.of[name, size, variant]
        median = statistics.median(values) if values else None
        base = self.of.get((name, size, BASE))
        base = statistics.median(base) if base else None
        ratio = round(median / base, 3) if median is not None and base else None
        return {"name": name, "size": size, "variant": variant, "median": rounded(median),
                "p99": rounded(p99(values)), "unit": self.unit, "n": len(values),
                "ratio_to_ebb": ratio, "failed": self.failed.get((name, size, variant), 0)}


def p99(values):
    """Nearest rank; the largest value where there are less than 100."""
    return sorted(values)[max(0, math.ceil(len(values) * 0.99) - 1)] if values else None


def rounded(value):
    """To four digits, since more would be noise."""
    return None if value is None else float(f"{value:.4g}")


def bound(metrics, of, field, bound_text, text):
    """A bound on one field of the metric `of` (name, size, variant), as "<= 1" or ">= 100".

    A value that is not there does not hold it.
    """
    value = next((m[field] for m in metrics if (m["name"], m["size"], m["variant"]) == of), None)
    sign, limit = bound_text.split()
    ok = value is not None and (value <= float(limit) if sign == "<=" else value >= float(limit))
    return {"text": text, "value": value, "bound": bound_text, "ok": ok}


def problems(summary):
    """The errors of a summary, as sentences; empty when it is well-formed."""
    found = _typed("summary", summary, SUMMARY)
    if found:
        return found
    if not summary["metrics"]:
        found.append("metrics is empty")
    seen = set()
    for i, m in enumerate(summary["metrics"]):
        where = f"metrics[{i}]"
        wrong = _typed(where, m, FIELDS)
        found += wrong
        if wrong:
            continue
        key = m["name"], m["size"], m["variant"]
        if key in seen:
            found.append(f"{where} is there twice: {key}")
        seen.add(key)
        if (m["n"] == 0) != (m["median"] is None):
            found.append(f"{where}: n is {m['n']}, but median is {m['median']}")
        if m["variant"] == BASE and m["n"] and m["ratio_to_ebb"] not in (1, None):
            found.append(f"{where}: {BASE} against itself is {m['ratio_to_ebb']}")
    return found


def _typed(where, value, wanted):
    if not isinstance(value, dict):
        return [f"{where} is not an object"]
    return [f"{where}.{name} is {value.get(name)!r}, of the wrong type or missing"
            for name, types in wanted.items()
            if name not in value or not isinstance(value[name], types) or
            isinstance(value[name], bool)]


def table(metrics):
    """The metrics as lines of text."""
    lines = [f"{'what':28} {'size':8} {'variant':18} {'median':>11} {'p99':>11} {'n':>4} "
             f"{'to ebb':>9}"]
    for m in metrics:
        failed = f"  {m['failed']} failed" if m["failed"] else ""
        ratio = "-" if m["ratio_to_ebb"] is None else f"{m['ratio_to_ebb']:g}x"
        lines.append(f"{m['name']:28} {m['size']:8} {m['variant']:18} "
                     f"{measure(m, 'median'):>11} {measure(m, 'p99'):>11} {m['n']:4} "
                     f"{ratio:>9}{failed}")
    return lines


def verdicts(bounds):
    return [f"{'holds' if b['ok'] else 'DOES NOT HOLD':14} {b['text']}: {b['value']}, bound "
            f"{b['bound']}" for b in bounds]


def measure(metric, which):
    value = metric[which]
    return "-" if value is None else f"{value:,g} {metric['unit']}"
