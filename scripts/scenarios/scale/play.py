# SPDX-License-Identifier: GPL-2.0-or-later
"""What happens in `scale`."""

STATIC_DWELLS = 6   # how long it runs without anything to scale, in dwell times


def play(stage, dwell_s):
    """The engine itself takes one CPU per step, gives them back, and ends (its step mode)."""
    name, vm = next(iter(stage.vms.items()))
    stage.start(name)
    stage.wait_join(name)
    steps = sum(c.max_cpus for c in vm.cells) - vm.startup_cpus
    if steps == 0:
        stage.doing = "the engine has nothing to take"
        stage.watch(dwell_s * STATIC_DWELLS)
        stage.stop(name)
        stage.wait_leave(name)
    else:
        stage.doing = "the engine takes one CPU after the other, and gives them back"
        # Each step once up and once down, the first and last plateau, and as much again.
        stage.wait_leave(name, 2 * dwell_s * (2 * steps + 2))
    stage.watch(0.5)
