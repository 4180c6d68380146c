# SPDX-License-Identifier: GPL-2.0-or-later
"""The host and the numbers of `tenants`, whose VMs come and go (play.py)."""
from harness.stage.plan import LONG_PERIOD_MS, Plan, default_share, host_of

SOCKETS, CORES = 2, 4
# VMs for each number of tenants; three of four VMs serve three tenants.
SIZES = ((1, 4), (2, 2), (4, 1))


def of(a):
    share = a.share or default_share(SOCKETS * CORES)
    return Plan(host_of(SOCKETS, CORES, 1, share, period_ms=LONG_PERIOD_MS), "strict", [], 0.0)


def cpus_of(tenants):
    """Of each tenant; what does not divide stays idle in both set-ups."""
    return CORES // tenants
