# SPDX-License-Identifier: GPL-2.0-or-later
"""`tenants`: a VM for each tenant against one engine with partitions."""
from ..scenario import Scenario
from . import figure, plan, play, verdict, words

SCENARIO = Scenario("tenants", plan.of, play.play, verdict.evaluate, figure.draw, words.WORDS,
                    is_sliced=True)
