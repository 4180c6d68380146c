# SPDX-License-Identifier: GPL-2.0-or-later
"""`cluster`: databases on three hosts; one moves live, one host is lost."""
from ..scenario import Scenario
from . import figure, plan, play, verdict, words

SCENARIO = Scenario("cluster", plan.of, play.play, verdict.evaluate, figure.draw, words.WORDS,
                    is_sliced=True, packages=("--cluster",))
