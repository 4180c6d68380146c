# SPDX-License-Identifier: GPL-2.0-or-later
"""The VMs and the numbers of `broker` (verdict.py says what must come out).

The paper's experiment to scale: 26 GB become a load's pool_mib, a minute its minute_s. What it
calls the broker's threshold and target are the same parts of the whole.
"""
import argparse
from dataclasses import dataclass

from harness.lab.domain import Cell, Vm
from harness.stage.plan import Plan, default_share, guest_options, host_of

from ..scenario import Option

SUBJECT = "vom"
BLACK_BOXES = ("equal", "proportional", "balloon")
POLICIES = (SUBJECT, *BLACK_BOXES)
ABLATED = "proportional"        # that takes the place of the subject
COLD, WARM = "cold", "warm"

THRESHOLD_PCT, TARGET_PCT = 96, 92      # 25 and 24 of 26
FAILOVER_PCT = 100              # no VM has to move away
WINDOW_MIN, RAMP_MIN = 2, 10    # minutes: of the moving average, of the ramp-up
IDLE_HALF_MIN = 2               # after which an engine counts on half the use of what it holds
FILL_MIN = 10                   # longest wait for the cold VM to hold what it can
RESTART_MIN = 10                # of the cold VM's load, when the warm one has none
DISK_MIB = 1024
DEADLINE_MS = 10000
REPORT_MS = 500
CORES = 2


@dataclass
class Load:
    """What both databases run, alike: larger than what one of them can have, as in the paper."""
    server: str
    boot_mib: int
    pool_mib: int       # of both VMs together
    min_mib: int        # guaranteed to each
    max_mib: int        # with the other's minimum, just within the threshold
    minute_s: float
    cool_down_min: float    # between two brokerings; the paper has one
    # Of each VM's disk, as those that are rented have a limit. It sets the pace, not the CPUs,
    # which are not always as fast; and a VM can read most of what one brokering makes free in a
    # cool-down.
    read_iops: int
    idle_min: float = 30    # minutes in which the cold VM's memory grows cold
    both_min: float = 10    # of both loads, at the end, where nothing is bounded


LOADS = {
    "ycsb": Load("--workload ycsb --operations 10 --update 0.2 --theta 0.99 --records 150000",
                 256, 160, 18, 134, 8.0, 0.5, 2000),
    # Half of the data in half of the time, from a disk that stays as it is: in a minute it moves
    # the same part of the whole, and still sets the pace.
    "ycsb-short": Load("--workload ycsb --operations 10 --update 0.2 --theta 0.99 --records 75000",
                       256, 80, 10, 66, 4.0, 0.5, 2000, idle_min=20, both_min=3),
    # Some 108 MiB, of which the last 30 are hardly used. Its rows are small, so that an emulated
    # CPU takes as long for 1 MiB of them as for several of the other's. It is slow until most of
    # what it uses is there, so that it pays to take less time over that.
    "tpcc": Load("--workload tpcc --warehouses 1 --orders 100000 --keep-orders 3000",
                 320, 108, 18, 84, 8.0, 0.25, 4000),
}


def some_policies(text):
    names = text.split(",")
    if len(set(names)) != len(names) or not set(names) <= set(POLICIES):
        raise argparse.ArgumentTypeError(f"{text}: allowed are {','.join(POLICIES)}")
    return names


OPTIONS = (
    Option("--load", "what both databases run: ycsb (default), ycsb-short, which has half of the "
           "data and takes 15 minutes, or tpcc, which is like TPC-C", {"choices": tuple(LOADS)},
           lambda load: f"-{load}"),
    Option("--policies", f"only these rounds, of {', '.join(POLICIES[:-1])} and {POLICIES[-1]}; "
           "fails unless it is all of them", {"type": some_policies, "metavar": "A,B"}))


def rounds(ablate, policies=POLICIES):
    """[{variant, policy}] in the order in which they run; the variant is the name in the samples.
    The ablation runs a black-box policy where the subject's turn would be."""
    return [{"variant": name, "policy": ABLATED if ablate and name == SUBJECT else name}
            for name in policies]


def of(a):
    return make(a.ablate, a.seed, a.time_scale, a.share, a.load or "ycsb", a.policies or POLICIES)


def make(ablate, seed, time_scale, share=None, load="ycsb", policies=POLICIES):
    host = host_of(1, CORES, 1, share or default_share(CORES))
    what = LOADS[load]
    minute = what.minute_s * time_scale
    cool_down_s = max(1, round(what.cool_down_min * minute))     # ebbd takes whole seconds
    deadline_ms = int(DEADLINE_MS * time_scale)
    vms = []
    for i, name in enumerate((COLD, WARM)):
        server = f"{what.server} --seed {seed + i} --interval-ms {REPORT_MS} --pool " \
                 "--cold-dir /cold --control - --elastic none " \
                 f"--idle-half-ms {max(1, round(1000 * IDLE_HALF_MIN * minute))}"
        vms.append(Vm(name, [Cell(1, 1, 0, what.max_mib, what.min_mib)], what.boot_mib,
                      mem_deadline_ms=deadline_ms, disks_mib=[DISK_MIB], disks_in_memory=True,
                      read_iops=what.read_iops,
                      options=guest_options(name, server, REPORT_MS, cold="vda")))
    order = rounds(ablate, policies)
    return Plan(
        host, order[0]["policy"], vms, minute,
        agent_options={
            "pool_mib": what.pool_mib, "memory_threshold_percent": THRESHOLD_PCT,
            "memory_target_percent": TARGET_PCT, "memory_failover_percent": FAILOVER_PCT,
            "cool_down_s": str(cool_down_s)},
        more={"broker": {
            "load": load, "rounds": order, "pool_mib": what.pool_mib,
            "min_mib": what.min_mib, "max_mib": what.max_mib,
            "threshold_pct": THRESHOLD_PCT, "target_pct": TARGET_PCT, "minute_s": minute,
            "cool_down_s": cool_down_s,
            "window_s": WINDOW_MIN * minute, "fill_s": FILL_MIN * minute,
            "idle_s": what.idle_min * minute, "ramp_s": RAMP_MIN * minute,
            "restart_s": RESTART_MIN * minute, "both_s": what.both_min * minute,
            "deadline_ms": deadline_ms, "histograms": []}})
