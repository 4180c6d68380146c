# SPDX-License-Identifier: GPL-2.0-or-later
"""`spot`: three VMs join and leave a host."""
from ..scenario import Scenario
from . import figure, plan, play, verdict, words

SCENARIO = Scenario("spot", plan.of, play.play, verdict.evaluate, figure.draw, words.WORDS,
                    options=plan.OPTIONS, has_tiers=True)
