# SPDX-License-Identifier: GPL-2.0-or-later
"""The VMs and the numbers of `rebalance` (verdict.py says what must come out).

The paper's experiment to scale: 8 databases of 8 CPUs on 32 cores become 8 of 2 on 8, its window
of 15 s becomes WINDOW_S, and its bursts of 15 minutes as many windows. A database is loaded with
parts of what it can do with cores of its own.
"""
import os
import random
from dataclasses import dataclass, field

from .. import plan
from ..domain import Cell, Vm

SCENARIO = "rebalance"
STATIC, REBALANCED = "static", "rebalanced"
MODES = (STATIC, REBALANCED)
VMS, CPUS, CORES = 8, 2, 8
MEMORY_MIB = 192
WINDOW_S = 1
NEVER_S = 3600          # longer than any run: cores stay as they were given
# Parts of what one VM can do alone, while all compute at once. In a burst one VM is at HIGH, all
# others at LOW. HIGH and LOW together are more than a core, HIGH alone and three LOW are not, also
# if what is begun often costs half as much again: so it does where CPUs are emulated.
HIGH, LOW = 0.9, 0.15
BURSTS = 2
BURST_S, PAUSE_S = 60.0, 6.0
# With heavy skew half of the VMs compute; two of them are more than the cores that they share.
SKEW, IDLE = 0.9, 0.0
SKEW_S = 16.0
CALIBRATE_S = 6.0
CONTEND_S = 10.0        # of which the first part is left out
HOT, ACTIVE = 0.95, 0.05        # of a core, in a window
REPORT_MS = 500
SERVER = "--workload cdb --cdb-mix 1:0:0 --cpu-work 400 --records 2000"
MAX_SEEDS = 5


@dataclass
class RebalancePlan(plan.Plan):
    rebalance: dict = field(default_factory=dict)
    agent_options: dict = field(default_factory=dict)


def bursts(seed, names, n=BURSTS):
    """Which VM is at HIGH, burst by burst: never the same twice in turn."""
    draw, found = random.Random(seed), []
    for _ in range(n):
        found.append(draw.choice([name for name in names if name not in found[-1:]]))
    return found


def make(ablate, seed, time_scale, share=None, seeds=1):
    cpus = len(os.sched_getaffinity(0))
    share = share or min(1.0, int(100 * plan.HOST_LOAD * cpus / CORES) / 100)
    host = {"spec": f"emulated:1x{CORES}x1@{share:g}", "emulated": True, "sockets": 1,
            "cores": CORES, "threads": 1, "share": share, "real_cpus": cpus}
    vms = []
    for i in range(VMS):
        name = f"vm{i + 1}"
        vms.append(Vm(name, [Cell(CPUS, CPUS, 0)], MEMORY_MIB, is_shared=True,
                      options={"name": name, "shell": "ttyS1",
                               "monitor": f"--interval-ms {REPORT_MS}",
                               "server": f"{SERVER} --seed {seed + i} --interval-ms {REPORT_MS} "
                                         "--control - --elastic none --quiet"}))
    names = [vm.name for vm in vms]
    told = [{"seed": seed + i, "bursts": bursts(seed + i, names)} for i in range(seeds)]
    return RebalancePlan(
        SCENARIO, "fair", vms, BURST_S * time_scale, host,
        {"window_s": WINDOW_S, "high": HIGH, "low": LOW, "skew": SKEW, "seeds": told,
         "burst_s": BURST_S * time_scale, "pause_s": PAUSE_S * time_scale,
         "skew_s": SKEW_S * time_scale, "hot": HOT, "active": ACTIVE, "cpus": CPUS,
         # Whether cores are given anew, by the name of the mode in the samples.
         "modes": {STATIC: False, REBALANCED: not ablate}},
        {"shared_cores": str(CORES), "hot_window_s": str(NEVER_S)})
