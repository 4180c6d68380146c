# SPDX-License-Identifier: GPL-2.0-or-later
"""Hosts, VMs and their load in `cluster`, and the scores by which Pacemaker places them."""
from harness.lab.domain import Cell, Vm
from harness.stage.plan import LONG_PERIOD_MS, Plan, default_share, host_of

HOSTS = ("h1", "h2", "h3")
CORES = 2               # of each host
PORT = 6379
MEMORY_MIB, DISK_MIB = 256, 1024
ROWS, CONNECTIONS = 500, 4
MIX = "get=60,set=20,count=20"

# Where VMs begin, and requests per second of their clients.
HOMES = {"db1": "h1", "db2": "h1", "db3": "h2", "db4": "h3"}
RATES = {"db1": 15, "db2": 15, "db3": 20, "db4": 10}
HOST_RATE = 100         # what a host is counted on to serve
# The clients of this one want more, so that it has to leave its host; then the other host is lost.
GROWS, GROWN_RATE = "db2", 45
LOST = "h2"

STEADY_S, GROWN_S, AFTER_MOVE_S, AFTER_LOSS_S = 8.0, 4.0, 8.0, 6.0

STAYS, LEAVES = 1000, 0     # scores of a VM on its own host


def of(a):
    # Twice as much as there is: VMs are idle most of the time, and soon up if only one boots.
    share = a.share or min(1.0, 2 * default_share(CORES * len(HOSTS)))
    host = host_of(1, CORES, 1, share, period_ms=LONG_PERIOD_MS)
    return Plan({**host, "hosts": len(HOSTS)}, "fair", [], 0.0)


def vms():
    """Each keeps its database on a disk that all hosts see: it outlives its host."""
    return [Vm(name, [Cell(CORES, 1, 0)], MEMORY_MIB, address=f"10.77.0.{11 + i}/24", tier="lend",
               plug="ahead", disks_mib=[DISK_MIB], options={
                   "name": name, "shell": "ttyS1", "cold": "vda",
                   "server": f"--listen 0.0.0.0:{PORT} --quiet --keys 20000 --durability commit "
                             "--log-dir /cold/log --recover"})
            for i, name in enumerate(HOMES)]


def scores(where, rates, leaves=(), is_ablated=False):
    """{VM: {host: score}}. where: the VMs' hosts; leaves: VMs that are to leave theirs.

    The scores of the others are what is left of a host with the VM on it, in thousandths. They
    stand before they are needed: no placer has to be alive when a host is lost. Ablated, a VM may
    only be where it is.
    """
    found = {}
    for vm, home in where.items():
        found[vm] = {home: LEAVES if vm in leaves and not is_ablated else STAYS}
        for host in HOSTS if not is_ablated else ():
            if host != home:
                use = rates[vm] + sum(rates[other] for other in where
                                      if other != vm and where[other] == host)
                found[vm][host] = max(1, round(1000 * (1 - use / HOST_RATE)))
    return found
