# SPDX-License-Identifier: GPL-2.0-or-later
"""`place`: a simulated cluster over a week, with placement that looks ahead and without."""
from ..scenario import Scenario
from . import figure, plan, play, verdict, words

SCENARIO = Scenario("place", plan.of, play.play, verdict.evaluate, figure.draw, words.WORDS,
                    options=plan.OPTIONS, is_sliced=True, has_vms=False)
