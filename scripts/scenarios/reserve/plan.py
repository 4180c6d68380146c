# SPDX-License-Identifier: GPL-2.0-or-later
"""The hosts, the tenants and the numbers of `reserve` (verdict.py says what must come out).

The paper's experiments to scale: its 600 s are some ten, and its three disks are one that does
DISK_IOPS requests per second (harness/lab/volumes.py says how).
"""
from harness.lab.domain import Cell, Vm
from harness.stage.plan import Plan, default_share, host_of

from ..scenario import Option

# Kinds of promises: the one that the scenario shows, and the two ablations.
RESERVED, MAX_ONLY, NONE = "reserved", "max-only", "none"
MEET, GREEDY, NEIGHBOURS, OVERBOOKED = "meet", "greedy", "neighbours", "overbooked"
# By the number in docs/scenarios.md.
PARTS = {1: MEET, 2: GREEDY, 3: NEIGHBOURS, 4: OVERBOOKED}

DISK_IOPS = 404
# Enough that the disk never waits for a request; the disk answers within DEPTH / DISK_IOPS.
DEPTH = 4
VOLUME_MIB = 2048       # sparse
REPORT_MS = 500
SETTLE_S = 3.0

# Part 1, figure 4. Together 99% of what the disk can do. After a pause the throttle node lets
# through what it did not for a tenth of a second: a guest under TCG does not ask for more as fast.
MEET_DISK_IOPS = 202
HIGH_IOPS, LOW_IOPS = 150, 50
HALF_S = 25.0
MEET_CPUS, MEET_MEMORY_MIB = 1, 256
# Two thirds of the records are on disk, so that a transaction waits for the disk, not for a CPU.
# When its memory is full, an engine asks for more records only when it has all that it asked for:
# so it does not always have a request that waits. Beside it some read the volume one block after
# the other, like the paper's load of nothing but I/O; a promise is about all of a VM's requests.
# Nothing is written, so nothing can be lost: to read all records again would take minutes.
MEET_SERVER = ("--workload uniform --data-mib 24 --memory-mib 8 --operations 16 --update 0 "
               "--no-verify")
MEET_BLOCKS = 24        # processes in each VM: more than its QEMU sends at a time
READERS = ("vm1", "vm2")

# Parts 2 and 3: one core that is shared. Its own quota, in part 2, costs precision, the less the
# longer its period is (emureserve.h).
CPU_SHARE, CPU_PERIOD_MS = 0.8, 500
CPU_PCT = 50                    # of the core, promised to the tenant t1
TPCC_MEMORY_MIB = 400
TPCC = "--workload tpcc --warehouses 1 --orders 30000 --keep-orders 3000"

# Part 2, figure 5. Greedy tenants compute and read all the time.
GREEDY_TENANTS, GREEDY_MEMORY_MIB = 3, 160
PHASE_S, PHASE_SETTLE_S = 8.0, 2.0
# Alone and beside all of them in turn: what the machine does meanwhile then meets both alike.
TURNS, TURN_S, TURN_SETTLE_S = 5, 4.0, 1.0
T1_IOPS, MAX_IOPS = 150, 250
# Memory. As in the paper the tables of t1 (some 108 MiB) fit what is promised to it, which is the
# most that anybody may have. They do not fit half of what there is, and the first greedy tenant
# takes all that it can get. The rest of t1's memory does not come from the pool.
RESERVE_MEM_MIB, POOL_MIB = 116, 200
POOLED_TPCC_MEMORY_MIB = 320
# With a pool Linux sets aside 64 MiB for devices that can not reach it.
POOLED_GREEDY_MEMORY_MIB = GREEDY_MEMORY_MIB + 64
# Long enough for t1 to move records to its slow disk, beside all others: what is taken by force is
# lost.
MEM_DEADLINE_MS = 60000
# The log of t1 is on its volume: some hundred requests per second.
LOG = "--durability async --group-us 20000 --log-dir /cold/log"
COLD = "--pool --cold-dir /cold"
TAKE_MEMORY = ("(while :; do /ebb/tests/ebbt-memhold hold 0 {bytes} >/dev/null 2>&1 & sleep 2; "
               "done) & ").format(bytes=POOL_MIB << 20)
GREEDY_RUN = ("(while :; do :; done) & while :; do dd if=/dev/vda of=/dev/null bs=4k count=5000 "
              "iflag=direct 2>/dev/null; done")

# Part 3, table 1. The core is a whole real CPU. A core with the quota of part 2 stops for the last
# 100 ms of each period, and a transaction that arrives then waits, whatever t1 is promised.
NEIGHBOUR_COUNT = 24
TABLE_CPU_SHARE = 1.0
# Nothing arrives until the neighbours compute and the promise holds.
QUIET_S = 4.0
ARRIVALS = "0:0.1,{at:g}:{rate:g}"
# A flood, so that t1 always has work, shows how much of the core it gets.
FLOOD_PS, FLOOD_S, FLOOD_SETTLE_S = 1000000, 6.0, 1.0
# Response times are measured at a rate that t1 serves with a maximum only, too: then it can serve
# some 400 per second. Of each of the rarest types, 4% of all, 256 transactions arrive.
TABLE_PS, TABLE_S = 160, 40.0

# Part 4, figures 6 and 7: twice what the disk can do.
TENANTS, TENANT_IOPS, TENANT_DEPTH = 8, 100, 16
OVERBOOKED_S, IDLE_S = 40.0, 5.0
IDLER = 1               # the tenant that is idle half of the time: seconds of work, then of none

OPTIONS = (
    Option("--part", f"only this part, one of {', '.join(map(str, PARTS))} (all)",
           {"type": int, "choices": tuple(PARTS), "metavar": "N"}, lambda n: f"-part{n}"),
    Option("--max-only", "with --ablate: maxima instead of no promises at all",
           {"action": "store_true"}, lambda _: "-max-only", is_for_ablation=True))


def of(a):
    mode = RESERVED if not a.ablate else MAX_ONLY if a.max_only else NONE
    parts = [PARTS[a.part]] if a.part else list(PARTS.values())
    share = a.share or default_share(2 * MEET_CPUS)
    return Plan(host_of(1, 2 * MEET_CPUS, 1, share), "fair", [], 0.0, more={"reserve": {
        "mode": mode, "parts": parts, "disk_iops": DISK_IOPS, "depth": DEPTH,
        GREEDY: {"tenants": GREEDY_TENANTS, "phase_s": PHASE_S * a.time_scale,
                 "settle_s": PHASE_SETTLE_S, "turns": TURNS, "turn_s": TURN_S * a.time_scale,
                 "turn_settle_s": TURN_SETTLE_S, "core_share": CPU_SHARE, "cpu_pct": CPU_PCT,
                 "reserve_mem_mib": RESERVE_MEM_MIB, "pool_mib": POOL_MIB},
        NEIGHBOURS: {"count": NEIGHBOUR_COUNT, "cpu_pct": CPU_PCT,
                     "core_share": TABLE_CPU_SHARE, "flood_s": FLOOD_S * a.time_scale,
                     "rate": TABLE_PS, "seconds": TABLE_S * a.time_scale},
        MEET: {"disk_iops": MEET_DISK_IOPS, "high": HIGH_IOPS, "low": LOW_IOPS,
               "half_s": HALF_S * a.time_scale},
        OVERBOOKED: {"tenants": TENANTS, "iops": TENANT_IOPS, "idler": f"tenant{IDLER}",
                     "seconds": OVERBOOKED_S * a.time_scale, "idle_s": IDLE_S * a.time_scale}}})


def promise(mode, iops, most):
    """Keys of a volume's promise. iops: what is reserved; most: the maximum that everybody has who
    has nothing else. As in the paper these are alike, so all together may have more than there
    is."""
    return {RESERVED: {"reserve_iops": iops, "max_iops": None},
            MAX_ONLY: {"reserve_iops": None, "max_iops": most},
            NONE: {"reserve_iops": None, "max_iops": None}}[mode]


def cpu_host(core_share):
    """The host of the parts about CPU time."""
    return host_of(1, 1, 1, core_share, period_ms=CPU_PERIOD_MS)


def cpu_promise(mode, has_reservation):
    """Keys of an SLA. Everybody has the maximum, as in the paper, but without any promises."""
    most = 0 if mode == NONE else CPU_PCT
    return {"reserve-percent": CPU_PCT if mode == RESERVED and has_reservation else 0,
            "max-percent": most}


def mem_promise(mode):
    """The same for memory, of t1."""
    return {"reserve-mem": RESERVE_MEM_MIB if mode == RESERVED else 0}


def pooled_tpcc_vm():
    """t1 of part 2. Its monitor tells the host how often its engine reads from disk."""
    return shared_vm("t1", POOLED_TPCC_MEMORY_MIB, RESERVE_MEM_MIB, cold="vda",
                     monitor=f"--interval-ms {REPORT_MS}")


def greedy_vm(i):
    if i:
        return shared_vm(f"greedy{i + 1}", GREEDY_MEMORY_MIB, modules="virtio_blk", run=GREEDY_RUN)
    return shared_vm("greedy1", POOLED_GREEDY_MEMORY_MIB, RESERVE_MEM_MIB, modules="virtio_blk",
                     run=TAKE_MEMORY + GREEDY_RUN)


def shared_vm(name, memory_mib, pool_mib=0, **options):
    """A VM with one vCPU on the shared core. pool_mib: the most that it may have of the pool."""
    return Vm(name, [Cell(1, 1, 0, pool_mib)], memory_mib, is_shared=True, volumes=[name],
              mem_deadline_ms=MEM_DEADLINE_MS,
              options={"name": name, "shell": "ttyS1", "monitor": "0", **options})


def meet_vm(i):
    return Vm(READERS[i], [Cell(MEET_CPUS, MEET_CPUS, 0)], MEET_MEMORY_MIB, volumes=[READERS[i]],
              options={"name": READERS[i], "shell": "ttyS1", "cold": "vda",
                       "monitor": f"--interval-ms {REPORT_MS}"})


def meet_command(seed):
    """Starts the engine of a VM; what it says goes to a file."""
    return (f"oltp-server {MEET_SERVER} --cold-dir /cold --seed {seed} --elastic none "
            f"--interval-ms {REPORT_MS} >/run/engine 2>&1 &")


def meet_blocks_command():
    """Starts those beside it; none reads so much that it comes to its end."""
    step = (VOLUME_MIB << 20) // 4096 // MEET_BLOCKS
    return (f"for n in $(seq 0 {MEET_BLOCKS - 1}); do dd if=/dev/vda of=/dev/null bs=4k "
            f"iflag=direct skip=$((n * {step})) 2>/dev/null & done")
