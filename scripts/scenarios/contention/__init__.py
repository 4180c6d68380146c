# SPDX-License-Identifier: GPL-2.0-or-later
"""`contention`: an engine gives back CPUs that contention makes useless."""
from harness.measure.engine_probe import EngineProbe

from ..scenario import Scenario
from . import figure, plan, play, verdict, words

SCENARIO = Scenario("contention", plan.of, play.play, verdict.evaluate, figure.draw, words.WORDS,
                    probe=EngineProbe, has_tiers=True)
