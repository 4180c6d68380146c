# SPDX-License-Identifier: GPL-2.0-or-later
"""`peak`: an engine takes CPUs while traffic peaks."""
from harness.measure.engine_probe import EngineProbe

from ..scenario import Scenario
from . import figure, plan, play, verdict, words

SCENARIO = Scenario("peak", plan.of, play.play, verdict.evaluate, figure.draw, words.WORDS,
                    probe=EngineProbe, options=plan.OPTIONS, has_tiers=True)
