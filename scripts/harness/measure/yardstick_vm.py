# SPDX-License-Identifier: GPL-2.0-or-later
"""A VM beside those of a scenario that shows how fast the machine is for such VMs.

On a machine that is itself a guest, neighbours can halve what a second of CPU time is worth, for
seconds or minutes. How much depends on the code: the reference loop of speed.py stays in the
caches and loses less than an emulated guest does. So a VM with the same engine runs from before
the scenario until its end, on a socket of its own, where no policy can change what it has. Its
work per second of CPU time is the speed that the scenario's throughput is divided by. Two such VMs
follow each other within some 2% from second to second, where the loop was 5 to 13% off. One of the
machine's CPUs may be slower than another for seconds: it has one CPU, which visits them in turn.
"""
import itertools
import os

from harness.judge.yardstick import NAME
from harness.lab.domain import Cell, Vm


def vm(host_node, workload, memory_mib, report_ms, seed, **more):
    """The VM, on a host node that no other VM may use. workload, memory_mib: as many records as
    the VMs of the scenario have, or it does not lose what they lose when neighbours take the
    caches (with a quarter: 1.5 times as much). more: for the guest's init."""
    report = f"--interval-ms {report_ms}"
    return Vm(NAME, [Cell(1, 1, host_node)], memory_mib, tier="lend", plug="ahead", options={
        "name": NAME, "shell": "ttyS1", "monitor": report, **more,
        "server": f"{workload} --seed {seed} {report} --quiet"})


class Tour:
    """Sends the VM's CPU to the next of the machine's CPUs at each call."""

    def __init__(self, meter):
        """meter: core_meter.Meter, which knows the thread."""
        self.meter, self.cpus = meter, itertools.cycle(sorted(os.sched_getaffinity(0)))

    def __call__(self):
        cpu = next(self.cpus)
        for thread in self.meter.threads_of(NAME):
            try:
                os.sched_setaffinity(thread, {cpu})
            except ProcessLookupError:
                pass
