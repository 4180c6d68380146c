# SPDX-License-Identifier: GPL-2.0-or-later
"""`migrate`: a database moves to another node while clients use it."""
from ..scenario import Scenario
from . import figure, plan, play, verdict, words

SCENARIO = Scenario("migrate", plan.of, play.play, verdict.evaluate, figure.draw, words.WORDS,
                    options=plan.OPTIONS, is_sliced=True, has_vms=False, vms_with=plan.GUESTS)
