# SPDX-License-Identifier: GPL-2.0-or-later
"""What tests of verdicts ask of a run."""
from scenarios.outcome import summarize


def judge(run, host):
    """The summary. host: has samples and events."""
    return summarize(run, host.samples, host.events)


def failing(summary):
    return {c["name"] for c in summary["checks"] if not c["ok"]}


def value(summary, name):
    return next(c["value"] for c in summary["checks"] if c["name"] == name)
