# SPDX-License-Identifier: GPL-2.0-or-later
"""`failover`: a database goes to another node at once, with and without its records in memory."""
from ..scenario import Scenario
from . import figure, plan, play, verdict, words

SCENARIO = Scenario("failover", plan.of, play.play, verdict.evaluate, figure.draw, words.WORDS,
                    is_sliced=True, has_vms=False)
