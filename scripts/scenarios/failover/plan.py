# SPDX-License-Identifier: GPL-2.0-or-later
"""The processes and the numbers of `failover` (verdict.py says what must come out)."""
import os

from harness.stage.plan import Plan, cpus_of_nodes_and_clients

WARM, COLD = "warm", "cold"
WAREHOUSES = 2          # 345 MiB in memory
CONNECTIONS, RATE = 16, 200
# More of DELIVERY than the 4% of TPC-C, so that each second has some twenty of them. Their orders
# last: each warehouse begins with 900 for each of its districts.
DELIVERY = "delivery"
MIX = f"new_order=45,payment=37,order_status=4,{DELIVERY}=10,stock_level=4"
# Of the disk, for both nodes together: half a minute for all rows.
READ_MIB_S = 12
CHECKPOINT_MIB = 48
VOLUME_MIB = 2048
STEADY_S = 8.0
TAIL_S = {WARM: 12.0, COLD: 60.0}
PATIENCE_S = 40.0
ORDER = "failover timeout-s 30"

# The database of 1 GiB that is opened lazily.
LAZY_ROWS, LAZY_VALUE_BYTES = 67200, 16000
LAZY_VOLUME_MIB = 5120
# After a checkpoint that the second start makes little log is left to be redone.
LAZY_CHECKPOINT_MIB, LAZY_WRITE_S, LAZY_WRITE_RATE = 16, 3, 500
LAZY_SETTLE_S = 20.0


def of(a):
    cpus = sorted(os.sched_getaffinity(0))
    host = {"spec": "auto", "emulated": False, "sockets": 1, "cores": min(2, len(cpus)),
            "threads": 1, "share": 1.0, "real_cpus": len(cpus)}
    # Switched off: nothing is copied ahead, so the node that should be warm is as cold.
    hows = (COLD, COLD) if a.ablate else (WARM, COLD)
    nodes, clients = cpus_of_nodes_and_clients()
    return Plan(host, "", [], 0.0, more={
        "cpus": nodes, "client_cpus": clients, "cases": tuple(zip((WARM, COLD), hows))})
