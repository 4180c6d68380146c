# SPDX-License-Identifier: GPL-2.0-or-later
"""`isolate`: two tenants, a socket each."""
from harness.measure.engine_probe import EngineProbe

from ..scenario import Scenario
from . import figure, plan, play, verdict, words

SCENARIO = Scenario("isolate", plan.of, play.play, verdict.evaluate, figure.draw, words.WORDS,
                    probe=EngineProbe, has_tiers=True)
