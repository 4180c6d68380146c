# SPDX-License-Identifier: GPL-2.0-or-later
"""What a scenario is to run: on which host, with which VMs. Each scenario has its own plan.py."""
import os
from dataclasses import dataclass, field
from typing import Optional

from harness.lab.domain import Cell, Vm

SOCKETS, CORES = 2, 4           # of the usual emulated host; cores per socket
# All cores together leave a fifth of the machine to QEMU's other threads and to the agent.
HOST_LOAD = 0.8
# How often ebbt-tour visits each busy CPU of a guest, where throughput per CPU is compared: an
# emulated CPU is as fast as it will be after eight visits, and without them after 10 to 30 s.
TOUR_MS = 250
# Few conflicts: for comparing cores and threads, not locks.
FEW_CONFLICTS = "--operations 10 --update 0.05 --theta 0.2"


@dataclass
class Plan:
    host: dict
    policy: str
    vms: list
    dwell_s: float
    tier: str = "unplug"                    # how CPUs are given back
    yardstick: Optional[Vm] = None          # beside the scenario's VMs
    agent_options: dict = field(default_factory=dict)
    more: dict = field(default_factory=dict)    # what else goes into run.json
    records_cores: bool = False             # cores.csv: the use of each core over time

    @property
    def everybody(self):
        return self.vms + ([self.yardstick] if self.yardstick else [])

    @property
    def all_cores(self):
        """Of the emulated host: those of the scenario, and the yardstick's socket."""
        host = self.host
        return host["cores"] + (host["cores"] // host["sockets"] if self.yardstick else 0)


def default_share(cores, with_yardstick=False):
    """CPU share of a core: the part of a real CPU that it gets, so that all of them fit here."""
    share = HOST_LOAD * len(os.sched_getaffinity(0)) / (cores + with_yardstick)
    return min(1.0, int(share * 100) / 100)


# For scenarios that compare the throughput of VMs with few and with many CPUs. In periods of 10 ms
# a core runs for some 2 ms, of which it spends a tenth and more filling the caches that other
# programs used in between; less where another CPU of the same VM was before it. No such scenario
# cares that a core which has used up its quota stands still for 30 ms.
LONG_PERIOD_MS = 40


def host_of(sockets, cores, threads, share, with_yardstick=False, period_ms=None):
    """The emulated host. cores: per socket. The yardstick has a socket more, which does not count
    among those of the scenario. period_ms: of a core's quota; None: ebbd's default."""
    period = f"/{period_ms}ms" if period_ms else ""
    return {"spec": f"emulated:{sockets + with_yardstick}x{cores}x{threads}@{share:g}{period}",
            "emulated": True, "sockets": sockets, "cores": sockets * cores, "threads": threads,
            "share": share, "real_cpus": len(os.sched_getaffinity(0))}


def guest_options(name, server, monitor_ms, **more):
    """For the guest's init (scripts/guest-init). server: the options of oltp-server."""
    return {"name": name, "shell": "ttyS1", **more, "monitor": f"--interval-ms {monitor_ms}",
            "server": server}


def two_sockets(cpus, startup):
    """Cells of a VM that starts on one socket, and may take CPUs of the other."""
    return [Cell(cpus, startup, 0), Cell(cpus, 0, 1)]


def set_tier(vms, tier):
    """How the VMs give CPUs back; CPUs that are to be lent are plugged before they are needed."""
    for vm in vms:
        vm.tier = tier
        vm.plug = "demand" if tier == "unplug" else "ahead"


def cpus_of_nodes_and_clients():
    """(the CPUs of two nodes, those of their clients): clients have others if there are as many."""
    cpus = sorted(os.sched_getaffinity(0))
    nodes = (cpus[0], cpus[min(1, len(cpus) - 1)])
    return nodes, tuple(cpus[2:]) if len(cpus) >= 4 else nodes
