# SPDX-License-Identifier: GPL-2.0-or-later
"""The table of scenarios. A new one is a package beside this file and a name here."""
from . import (broker, cluster, contention, failover, isolate, memory, migrate, peak, place,
               rebalance, reserve, scale, scaleout, spot, tenants)

# In the order in which they are named to users; the first one is the default.
ALL = {package.SCENARIO.name: package.SCENARIO for package in (
    spot, scale, memory, contention, peak, isolate, broker, rebalance, reserve, scaleout,
    tenants, migrate, failover, cluster, place)}
DEFAULT = next(iter(ALL))


def of(record):
    """The scenario of a run or of a summary."""
    return ALL[record["scenario"]]
