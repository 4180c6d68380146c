# SPDX-License-Identifier: GPL-2.0-or-later
"""From a folder of recorded files to summary.json, report.html and the closing words."""
import os

from . import report, schema, words_engine, words_slices
from .broker import words as words_broker
from .memory import words as words_memory
from .rebalance import words as words_rebalance
from .summary import load, summarize


# Exit status of a program that concludes a run; 2 and 3 are for its own failures.
EXIT = {"pass": 0, "fail": 1, "not judged": 4}


def conclude(folder):
    """Writes summary.json and report.html into the folder and returns the summary."""
    run, samples, events = load(folder)
    summary = summarize(run, samples, events)
    schema.write_json(os.path.join(folder, schema.SUMMARY), summary)
    with open(os.path.join(folder, schema.REPORT), "w", encoding="utf-8") as f:
        f.write(report.render(run, samples, events, summary))
    return summary


def words(folder, summary):
    """What to print at the end: the checks that failed, then two or three lines for people."""
    lines = [f"FAIL {c['name']}: {report.measured(c)}, must be {c['bound']} {c['unit']}"
             for c in summary["checks"] if not c["ok"]]
    if summary["verdict"] == "not judged":
        return lines + ["Other programs took so much of the machine that work per CPU time says "
                        "nothing: run it again with less beside it.",
                        f"Verdict: not judged. Report: {os.path.join(folder, schema.REPORT)}"]
    if lines and summary["ablate"]:
        off = report.ABLATIONS.get(summary["scenario"], "static allocation")
        lines.append(f"The mechanism was switched off ({off}): failing is expected.")
    return lines + _saw(summary) + [
        f"Verdict: {summary['verdict']}. Report: {os.path.join(folder, schema.REPORT)}"]


def _saw(summary):
    if summary["ablate"] and summary["scenario"] == "memory":
        return ["You saw an engine that cannot move records to disk.", words_memory.cost(summary)]
    if summary["ablate"] and summary["scenario"] == "rebalance":
        return ["You saw databases on cores that stay as they were given.",
                words_rebalance.cost(summary)]
    if summary["ablate"] and summary["scenario"] == "broker":
        return ["You saw black-box brokering in place of the value of memory.",
                words_broker.cost(summary)]
    if summary["ablate"] and summary["scenario"] in words_engine.SCENARIOS:
        return [f"You saw the run without the mechanism: "
                f"{words_engine.ABLATIONS[summary['scenario']]}.", words_engine.cost(summary)]
    if summary["ablate"] and summary["scenario"] in words_slices.SCENARIOS:
        return words_slices.saw(summary)
    if summary["ablate"]:
        return ["You saw VMs with static allocation: each kept the CPUs it booted with.",
                f"{summary['idle_core_pct']} % of the host's core time was left unused; "
                f"{_count(summary['failed_transactions'])} transactions failed."]
    if summary["verdict"] == "fail":
        bad = sum(not c["ok"] for c in summary["checks"])
        return [f"This run did not show what it must: {bad} of {len(summary['checks'])} checks "
                "failed, named above.",
                f"{_count(summary['failed_transactions'])} transactions failed, "
                f"{_count(summary['lost_updates'])} updates lost.".capitalize()]
    if summary["scenario"] == "memory":
        return words_memory.saw(summary)
    if summary["scenario"] == "rebalance":
        return words_rebalance.saw(summary)
    if summary["scenario"] == "broker":
        return words_broker.saw(summary)
    if summary["scenario"] in words_engine.SCENARIOS:
        return words_engine.saw(summary)
    if summary["scenario"] in words_slices.SCENARIOS:
        return words_slices.saw(summary)
    host = summary["host"]
    where = f"{host['cores']} {'emulated ' if host['emulated'] else ''}cores"
    if summary["scenario"] == "scale":
        what = f"You saw one database VM go from its startup CPU to {where} and back by " \
               "hot-plug, without stopping."
        how = f"A CPU took {_ms(summary['cpu_add_ms'])} to add and " \
              f"{_ms(summary['cpu_remove_ms'])} to remove"
    else:
        what = f"You saw three database VMs join and leave a server of {where}, its CPUs moving " \
               "between them while they ran."
        how = f"After a join shares were equal within {_ms(summary['share_convergence_ms'])}"
    return [what, f"{how} (medians); {_count(summary['failed_transactions'])} transactions failed, "
            f"{_count(summary['lost_updates'])} updates lost."]


def _ms(distribution):
    value = distribution["median"]
    return "an unknown time" if value is None else f"{value:.0f} ms"


def _count(value):
    return "an unknown number of" if value is None else str(value)
