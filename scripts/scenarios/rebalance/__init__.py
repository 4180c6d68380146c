# SPDX-License-Identifier: GPL-2.0-or-later
"""`rebalance`: eight VMs on cores that they share."""
from ..scenario import Scenario
from . import figure, plan, play, verdict, words

SCENARIO = Scenario("rebalance", plan.of, play.play, verdict.evaluate, figure.draw, words.WORDS,
                    probe=play.Probe, options=plan.OPTIONS)
