# SPDX-License-Identifier: GPL-2.0-or-later
"""The VMs and the numbers of `isolate` (verdict.py says what must come out)."""
from harness.lab.domain import Cell, Vm
from harness.measure import yardstick_vm
from harness.stage.plan import (FEW_CONFLICTS, TOUR_MS, Plan, default_share, guest_options,
                                host_of, set_tier)

SOCKETS, CORES, THREADS = 2, 2, 2       # per host, socket, core
TWO_THREADS = 1.3       # what a core gives to two threads, against one (host-agent, emuspec.h)
WORKLOAD, MEMORY_MIB = f"--records 50000 {FEW_CONFLICTS}", 320
DWELL_S = 10.0
REPORT_MS = 500         # of engine and monitor


def of(a):
    return make(a.ablate, a.seed, a.time_scale, a.share, a.tier)


def make(ablate, seed, time_scale, share=None, tier=None):
    share = share or default_share(SOCKETS * CORES * TWO_THREADS, with_yardstick=True)
    tier, policy = tier or "lend", "fair" if ablate else "isolate"
    cpus, vms = CORES * THREADS, []
    for i in range(SOCKETS):
        # Each starts on a socket of its own, which is the first node of the guest.
        name = f"vm{i + 1}"
        server = f"{WORKLOAD} --quiet --seed {seed + i} --interval-ms {REPORT_MS}"
        vms.append(Vm(name, [Cell(cpus, 1, i), Cell(cpus, 0, 1 - i)], MEMORY_MIB,
                      options=guest_options(name, server, REPORT_MS, tour=TOUR_MS)))
    set_tier(vms, tier)
    sockets = {vm.name: [cell.host_node for cell in vm.cells] for vm in vms}
    return Plan(host_of(SOCKETS, CORES, THREADS, share, with_yardstick=True), policy, vms,
                DWELL_S * time_scale, tier,
                yardstick=yardstick_vm.vm(SOCKETS, WORKLOAD, MEMORY_MIB, REPORT_MS, seed,
                                          tour=TOUR_MS),
                more={"load": {"sockets": sockets}, "policy": policy})
