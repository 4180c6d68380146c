# SPDX-License-Identifier: GPL-2.0-or-later
"""`reserve`: promises in absolute numbers, kept beside greedy tenants, and metered."""
from ..scenario import Scenario
from . import figure, plan, play, verdict, words

SCENARIO = Scenario("reserve", plan.of, play.play, verdict.evaluate, figure.draw, words.WORDS,
                    options=plan.OPTIONS, is_sliced=True)
