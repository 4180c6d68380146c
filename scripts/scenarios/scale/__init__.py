# SPDX-License-Identifier: GPL-2.0-or-later
"""`scale`: one VM grows to the whole host and back."""
from ..scenario import Scenario
from . import figure, plan, play, verdict, words

SCENARIO = Scenario("scale", plan.of, play.play, verdict.evaluate, figure.draw, words.WORDS)
