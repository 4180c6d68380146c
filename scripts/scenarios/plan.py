# SPDX-License-Identifier: GPL-2.0-or-later
"""The VMs and numbers of each scenario: what to run on which host, with which engine options."""
import os
from dataclasses import dataclass, field
from typing import Optional

from . import yardstick
from .domain import Cell, Vm

SOCKETS = 2                     # of the emulated host
# Cores per socket. What a guest's first CPU does beside transactions (timers, reports) is a tenth of
# a core that has a sixth of a CPU; where single CPUs are compared there are fewer, larger cores.
CORES = {"spot": 4, "scale": 3}
# All cores together leave a fifth of the machine to QEMU's other threads and to the agent.
HOST_LOAD = 0.8
# 1 KiB each. A worker whose core is out of quota keeps its locks for most of a period, so that the
# others meet far more conflicts than on a real host, and the more the more there are: what scales
# needs a large table. What joins needs a small one, since it is loaded on one core.
RECORDS = {"spot": 10000, "scale": 200000}
MEMORY_MIB = {"spot": 256, "scale": 640}
# Interval of engine and monitor. Reports are made on a guest's first CPU, of which they take a
# tenth if there are four a second: where throughput per CPU is compared they are rarer.
REPORT_MS = {"spot": 250, "scale": 1000}
WORKLOAD = "--workload ycsb --operations 10 --update 0.2 --theta 0.5"
DWELL_S = {"spot": 9.0, "scale": 10.0}


@dataclass
class Plan:
    scenario: str
    policy: str
    vms: list
    dwell_s: float
    host: dict
    tier: str = field(default="unplug", kw_only=True)   # how CPUs are given back
    yardstick: Optional[Vm] = field(default=None, kw_only=True)     # beside the scenario's VMs

    @property
    def everybody(self):
        return self.vms + ([self.yardstick] if self.yardstick else [])

    @property
    def all_cores(self):
        """Of the emulated host: those of the scenario, and the yardstick's socket."""
        host = self.host
        return host["cores"] + (host["cores"] // host["sockets"] if self.yardstick else 0)


def default_share(cores):
    """Part of a real CPU that an emulated core gets, so that so many of them fit this machine."""
    share = HOST_LOAD * len(os.sched_getaffinity(0)) / cores
    return min(1.0, int(share * 100) / 100)


def host_of(sockets, cores, threads, share, with_yardstick):
    """The emulated host. cores: per socket. The yardstick has a socket more, which does not count
    among those of the scenario."""
    return {"spec": f"emulated:{sockets + with_yardstick}x{cores}x{threads}@{share:g}",
            "emulated": True, "sockets": sockets, "cores": sockets * cores, "threads": threads,
            "share": share, "real_cpus": len(os.sched_getaffinity(0))}


def make(scenario, ablate, seed, time_scale, share=None, tier=None):
    """tier: None is the scenario's own."""
    measured, cores = scenario == "scale", CORES[scenario]
    host = host_of(SOCKETS, cores, 1, share or default_share(SOCKETS * cores + measured), measured)
    dwell_s = DWELL_S[scenario] * time_scale
    tier = tier or ("lend" if scenario == "spot" else "unplug")
    vms = (_spot if scenario == "spot" else _scale)(ablate, seed, dwell_s)
    for vm in vms:
        vm.tier = tier
        # What is to be lent is better there before it is needed.
        vm.plug = "demand" if tier == "unplug" else "ahead"
    beside = yardstick.vm(SOCKETS, WORKLOAD, REPORT_MS[scenario], seed) if measured else None
    return Plan(scenario, "strict" if ablate else "fair", vms, dwell_s, host, tier=tier,
                yardstick=beside)


def _options(name, scenario, seed, more=""):
    """For the guest's init (scripts/guest-init)."""
    report = f"--interval-ms {REPORT_MS[scenario]}"
    server = f"{WORKLOAD} --records {RECORDS[scenario]} --seed {seed} {report} --quiet{more}"
    return {"name": name, "shell": "ttyS1", "monitor": report, "server": server}


def _spot(ablate, seed, _dwell_s):
    # Static allocation: three VMs that own their part of the host for good, 3 + 3 + 2 cores.
    static = ((2, 1), (1, 2), (1, 1))
    vms = []
    for i in range(3):
        # The one CPU to start with alternates between the sockets.
        first, second = (i % 2, 1 - i % 2)
        if ablate:
            cells = [Cell(static[i][first], static[i][first], first),
                     Cell(static[i][second], static[i][second], second)]
        else:
            cells = [Cell(CORES["spot"], 1, first), Cell(CORES["spot"], 0, second)]
        name = f"vm{i + 1}"
        vms.append(Vm(name, cells, MEMORY_MIB["spot"],
                      options=_options(name, "spot", seed + i)))
    return vms


def _scale(ablate, seed, dwell_s):
    cells = [Cell(1, 1, 0)] if ablate else [Cell(CORES["scale"], 1, 0), Cell(CORES["scale"], 0, 1)]
    return [Vm("vm1", cells, MEMORY_MIB["scale"],
               options=_options("vm1", "scale", seed, f" --step-seconds {dwell_s:g}"))]
