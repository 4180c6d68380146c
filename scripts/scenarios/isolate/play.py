# SPDX-License-Identifier: GPL-2.0-or-later
"""What happens in `isolate`: the policy chooses the CPUs; the scenario changes it once."""

SETTLE_S = 8        # longest wait for CPUs to be divided


def play(stage, dwell_s):
    """A second tenant comes; they are kept apart, then not; the second tenant goes."""
    first, second = stage.vms
    policy = stage.more["policy"]
    stage.start(first)
    stage.wait_join(first)
    stage.watch(dwell_s)
    stage.step("arrive", second, f"{second} arrives")
    stage.start(second)
    stage.wait_join(second)
    stage.watch(SETTLE_S * stage.scale)
    stage.step("apart", second, f"both run under the policy {policy}")
    stage.watch(dwell_s)
    stage.set_policy("fair")
    stage.watch(SETTLE_S * stage.scale)
    stage.step("fair", second, "both run under the policy fair")
    stage.watch(dwell_s)
    stage.set_policy(policy)
    stage.stop(second)
    stage.wait_leave(second)
    stage.step("left", second, f"{first} is alone again")
    stage.watch(SETTLE_S * stage.scale)
    stage.stop(first)
    stage.wait_leave(first)
