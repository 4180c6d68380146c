# SPDX-License-Identifier: GPL-2.0-or-later
"""From a folder of recorded files to summary.json, report.html and the closing words. The files
say which scenario it was."""
import os

from harness.record import schema
from harness.report import page, summary as summaries, wording

from . import catalogue

# Exit status of a program that concludes a run; 2 and 3 are for its own failures.
EXIT = {"pass": 0, "fail": 1, "not judged": 4}


def summarize(run, samples, events):
    return summaries.summarize(catalogue.of(run), run, samples, events)


def render(run, samples, events, summary):
    """The page report.html."""
    return page.render(catalogue.of(run), run, samples, events, summary)


def conclude(folder):
    """Writes summary.json and report.html into the folder and returns the summary."""
    run, samples, events = summaries.load(folder)
    summary = summarize(run, samples, events)
    schema.write_json(os.path.join(folder, schema.SUMMARY), summary)
    with open(os.path.join(folder, schema.REPORT), "w", encoding="utf-8") as f:
        f.write(render(run, samples, events, summary))
    return summary


def words(folder, summary):
    """What to print at the end: the checks that failed, then two or three lines for people."""
    lines = [f"FAIL {c['name']}: {page.measured(c)}, must be {c['bound']} {c['unit']}"
             for c in summary["checks"] if not c["ok"]]
    if summary["verdict"] == "not judged":
        return lines + ["Other programs took so much of the machine that work per CPU time says "
                        "nothing: run it again with less beside it.",
                        f"Verdict: not judged. Report: {os.path.join(folder, schema.REPORT)}"]
    if lines and summary["ablate"]:
        off = catalogue.of(summary).words.ablation
        lines.append(f"The mechanism was switched off ({off}): failing is expected.")
    return lines + _saw(summary) + [
        f"Verdict: {summary['verdict']}. Report: {os.path.join(folder, schema.REPORT)}"]


def _saw(summary):
    scenario = catalogue.of(summary)
    words = scenario.words
    if summary["ablate"]:
        return words.saw_ablated(summary)
    if summary["verdict"] == "fail":
        bad = sum(not c["ok"] for c in summary["checks"])
        lines = [f"This run did not show what it must: {bad} of {len(summary['checks'])} checks "
                 "failed, named above."]
        # A simulation has no transactions.
        if scenario.has_vms or summary["failed_transactions"] is not None:
            lines.append(wording.outcome(summary).capitalize())
        return lines
    return words.saw(summary)
