# SPDX-License-Identifier: GPL-2.0-or-later
"""What happens in `peak`: load follows a schedule that the engine was given, and which CPUs it
holds is its own choice."""


def play(stage, _dwell_s):
    stage.run_schedule(stage.more["load"]["seconds"])
