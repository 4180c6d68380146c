# SPDX-License-Identifier: GPL-2.0-or-later
"""`scaleout`: two nodes with two-phase commit against one engine."""
from ..scenario import Scenario
from . import figure, plan, play, verdict, words

SCENARIO = Scenario("scaleout", plan.of, play.play, verdict.evaluate, figure.draw, words.WORDS,
                    is_sliced=True, has_vms=False)
