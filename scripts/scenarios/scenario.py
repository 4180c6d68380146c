# SPDX-License-Identifier: GPL-2.0-or-later
"""What a scenario consists of. catalogue.py has the table of all of them.

A scenario is a package with one module for each part: plan (VMs and numbers), play (what happens),
verdict (what must come out), figure, and words. Modules outside such packages know no scenario by
its name.
"""
import argparse
from dataclasses import dataclass
from typing import Callable, Optional

from harness.report import wording


@dataclass(frozen=True)
class Option:
    """An option of scripts/demo that one scenario has; not given, its value is false."""
    flag: str                   # with its dashes
    help: str
    how: dict                   # for argparse.ArgumentParser.add_argument()
    suffix: Callable = lambda value: ""     # of the folder for the results, when it is given
    is_for_ablation: bool = False           # it needs --ablate

    def value(self, arguments):
        return getattr(arguments, self.flag.lstrip("-").replace("-", "_"))


def number(low, high, kind=float):
    """For argparse: a number between two others."""
    def parse(text):
        value = kind(text)
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f"{text} is not between {low:g} and {high:g}")
        return value
    parse.__name__ = "number"
    return parse


@dataclass(frozen=True)
class Words:
    """What report and closing words say of a scenario. Texts are plain, except for the table.

    lead and ablated_lead may contain {host}, {policy}, {dwell} and {startup}.
    """
    title: str
    lead: str
    ablated_lead: str
    tiles: Callable             # (summary) -> [(value, what it is)]
    saw: Callable               # (summary) -> the two closing lines of a run that passed
    paper: Callable             # (summary) -> [{what, paper, ours, where}]
    # The ablation: which mechanism it lacks, the same as a sentence for --help, what that cost.
    ablation: str = "static allocation"
    ablation_help: str = ""
    cost_title: str = "What static allocation costs"
    cost: Callable = wording.cost_of_static_allocation          # (summary) -> text
    saw_ablated: Callable = wording.saw_static_allocation       # (summary) -> closing lines
    caption: Callable = wording.caption     # (run) -> what to know when reading the figure
    table: Callable = lambda summary: ""    # (summary) -> HTML below the figure
    moves_cpus: bool = True     # the paper's times for adding and removing a CPU are of interest


@dataclass(frozen=True)
class Scenario:
    name: str
    plan: Callable              # (arguments of scripts/demo) -> plan.Plan
    # (stage, dwell_s). Of one in slices: (arguments, plan, accelerator), and it records the run.
    play: Callable
    evaluate: Callable          # (run, samples, events) -> checks.Verdict
    draw: Callable              # (run, samples, summary) -> HTML
    words: Words
    probe: Optional[Callable] = None    # (lab, boot, vms) -> a function that adds to each sample
    options: tuple = ()         # Option
    is_sliced: bool = False     # compares two set-ups in slices of time (sliced_run.py)
    has_vms: bool = True
    vms_with: Optional[Option] = None   # with this option it has VMs, too
    has_tiers: bool = False     # --tier may choose how CPUs are given back
    packages: tuple = ()        # for scripts/bootstrap: which more it needs

    def uses_vms(self, arguments):
        return self.has_vms or bool(self.vms_with and self.vms_with.value(arguments))
