# SPDX-License-Identifier: GPL-2.0-or-later
"""`broker`: memory goes from a cold database to a warm one, once under each policy."""
from ..scenario import Scenario
from . import figure, plan, play, verdict, words

SCENARIO = Scenario("broker", plan.of, play.play, verdict.evaluate, figure.draw, words.WORDS,
                    probe=play.Probe, options=plan.OPTIONS)
