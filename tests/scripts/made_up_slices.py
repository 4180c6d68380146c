# SPDX-License-Identifier: GPL-2.0-or-later
"""Made-up runs of `scaleout` and `tenants`."""


import made_up
from harness.record.schema import Sample


def sample(who, tps, cpu_came=1.0, **where):
    """cpu_came: of the CPU time that was due, that which came; tps is as it would be with all."""
    return Sample(1.0, who, 2, 2, 0, 0, tps * cpu_came, 1.0, 10, 90, 50, workers=2,
                  committed=int(tps), aborted=0, failed=0, cpu_ms=600 * cpu_came, cpu_due_ms=600,
                  **where)


def scaleout(first=8.0, memory=1.3, numa_nodes=1):
    """first: what one remote operation costs between nodes; memory: in one engine, any number."""
    samples = []
    for turn in range(3):
        noise = 1 + 0.02 * (turn - 1)
        for r in range(11):
            for node in ("node1", "node2"):
                samples.append(sample(node, 1000 * noise / (first if r else 1), variant="2pc",
                                      turn=turn, remote_ops=r))
            samples.append(sample("one", 1900 * noise / (memory if r else 1), variant="memory",
                                  turn=turn, remote_ops=r))
    run = made_up.run("scaleout", ["node1", "node2", "one"], numa_nodes=numa_nodes)
    run.update(accelerator="none", host=dict(run["host"], spec="auto", emulated=False))
    return run, samples


def tenants(factor=1.0, worst_turn=1.0, cpu_came=1.0):
    """factor: throughput of the VMs over that of the engine; worst_turn: of one turn besides;
    cpu_came: of the CPU time that was due to the VMs, that which came."""
    samples = []
    for n in (1, 2, 3, 4):
        for turn in range(3):
            samples.append(sample("engine", 4000, variant="engine", turn=turn, tenants=n))
            for vm in range(n):
                tps = 4000 * factor / n * (worst_turn if turn == 1 else 1)
                samples.append(sample(f"vm{vm}", tps, cpu_came, variant="vms", turn=turn,
                                      tenants=n))
    return made_up.run("tenants", ["engine", "vm0", "vm1", "vm2", "vm3"]), samples
