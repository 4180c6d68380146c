# SPDX-License-Identifier: GPL-2.0-or-later
"""`memory`: CPUs and memory of a node are taken from a VM and given back."""
from ..scenario import Scenario
from . import figure, plan, play, verdict, words

SCENARIO = Scenario("memory", plan.of, play.play, verdict.evaluate, figure.draw, words.WORDS,
                    probe=play.Probe)
