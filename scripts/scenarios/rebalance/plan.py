# SPDX-License-Identifier: GPL-2.0-or-later
"""The VMs and the numbers of `rebalance` (verdict.py says what must come out).

The paper's experiment to scale: 8 databases of 8 CPUs on 32 cores become 8 of 2 on 8, its window
of 15 s becomes WINDOW_S, and its bursts of 15 minutes as many windows. A database is loaded with
parts of what it can do with cores of its own.
"""
import random

from harness.lab.domain import Cell, Vm
from harness.measure.core_meter import WINDOW_S
from harness.stage.plan import Plan, default_share, guest_options, host_of

from ..scenario import Option, number

STATIC, REBALANCED = "static", "rebalanced"
MODES = (STATIC, REBALANCED)
VMS, CPUS, CORES = 8, 2, 8
MEMORY_MIB = 192
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
OPTIONS = (Option("--seeds", "how many sequences of bursts, from the seed on, 1 to "
                  f"{MAX_SEEDS} (1)", {"type": number(1, MAX_SEEDS, int), "metavar": "N"}),)


def bursts(seed, names, n=BURSTS):
    """Which VM is at HIGH, burst by burst: never the same twice in turn."""
    draw, found = random.Random(seed), []
    for _ in range(n):
        found.append(draw.choice([name for name in names if name not in found[-1:]]))
    return found


def of(a):
    return make(a.ablate, a.seed, a.time_scale, a.share, a.seeds or 1)


def make(ablate, seed, time_scale, share=None, seeds=1):
    host = host_of(1, CORES, 1, share or default_share(CORES))
    vms = []
    for i in range(VMS):
        name = f"vm{i + 1}"
        server = f"{SERVER} --seed {seed + i} --interval-ms {REPORT_MS} --control - " \
                 "--elastic none --quiet"
        vms.append(Vm(name, [Cell(CPUS, CPUS, 0)], MEMORY_MIB, is_shared=True,
                      options=guest_options(name, server, REPORT_MS)))
    names = [vm.name for vm in vms]
    told = [{"seed": seed + i, "bursts": bursts(seed + i, names)} for i in range(seeds)]
    return Plan(
        host, "fair", vms, BURST_S * time_scale, records_cores=True,
        agent_options={"shared_cores": str(CORES), "hot_window_s": str(NEVER_S)},
        more={"rebalance": {
            "window_s": WINDOW_S, "high": HIGH, "low": LOW, "skew": SKEW, "seeds": told,
            "burst_s": BURST_S * time_scale, "pause_s": PAUSE_S * time_scale,
            "skew_s": SKEW_S * time_scale, "hot": HOT, "active": ACTIVE, "cpus": CPUS,
            # Whether cores are given anew, by the name of the mode in the samples.
            "modes": {STATIC: False, REBALANCED: not ablate}}})
