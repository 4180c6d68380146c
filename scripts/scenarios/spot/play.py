# SPDX-License-Identifier: GPL-2.0-or-later
"""What happens in `spot`."""

AGAIN_DWELL = 0.6   # of the dwell time, for VMs that leave and come again


def play(stage, dwell_s):
    """VMs join one after the other and leave in the reverse order, dwell_s between. If there are to
    be more joins than VMs, one after the other leaves before that and comes again."""
    names = list(stage.vms)
    for name in names:
        stage.start(name)
        stage.wait_join(name)
        stage.watch(dwell_s)
    for i in range(stage.more["joins"] - len(names)):
        name = names[-1 - i % len(names)]
        stage.stop(name)
        stage.wait_leave(name)
        stage.end_life(name)
        stage.watch(AGAIN_DWELL * dwell_s)
        stage.start(name)
        stage.wait_join(name)
        stage.watch(AGAIN_DWELL * dwell_s)
    for name in reversed(names):
        stage.stop(name)
        stage.wait_leave(name)
        stage.watch(dwell_s if name != names[0] else 1.0)
