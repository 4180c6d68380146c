# SPDX-License-Identifier: GPL-2.0-or-later
"""Hosts, VMs and their load in `cluster`, and what earlier VMs of their class wanted."""
from harness.lab.domain import Cell, Vm
from harness.stage.plan import LONG_PERIOD_MS, Plan, default_share, host_of

HOSTS = ("h1", "h2", "h3")
CORES = 2               # of each host
VMS = ("db1", "db2", "db3", "db4")
PORT = 6379
MEMORY_MIB, DISK_MIB = 256, 1024
ROWS, CONNECTIONS = 500, 4
MIX, MEASURED_MIX = "get=60,set=20,count=20", "get=60,set=40"

# Requests per second, as parts of what the engine serves on one core, which is measured first:
# at the beginning; then of the two databases that share a host. One is short of CPUs then.
STEADY, GROWN = 0.25, (1.05, 0.7)
# So much more than is served that its workers are never idle.
MEASURED_RATE, MEASURE_S = 2000, 3.0

# When a host is hot, and how soon it names a VM to move; a real one takes more than a minute.
# VMs that boot and the measurement make it hot, too, but for a shorter time.
AGENT = {"hot_window_s": 5, "cool_down_s": 30}

CLASS = "oltp"
# Most earlier VMs of the class wanted a part of a CPU, some one, and a few more than that.
EARLIER = (300, 300, 300, 300, 300, 300, 900, 900, 900, 1500)   # thousandths of a CPU
DAYS_S, STEP_S = 2 * 86400, 600

# Hosts have cooled down after REST_S and STEADY_S.
REST_S, STEADY_S, AFTER_MOVE_S, AFTER_LOSS_S = 12.0, 16.0, 8.0, 6.0

# Ablated there is no placer, and a VM is as welcome on one host as on another.
ALIKE = 500


def of(a):
    # More than there is: few VMs are busy, and one that has moved must translate all code anew.
    share = a.share or min(1.0, 1.5 * default_share(CORES * len(HOSTS)))
    host = host_of(1, CORES, 1, share, period_ms=LONG_PERIOD_MS)
    return Plan({**host, "hosts": len(HOSTS)}, "fair", [], 0.0)


def vms():
    """Each keeps its database on a disk that all hosts see: it outlives its host."""
    return [Vm(name, [Cell(CORES, 1, 0)], MEMORY_MIB, address=f"10.77.0.{11 + i}/24", tier="lend",
               plug="ahead", disks_mib=[DISK_MIB], options={
                   "name": name, "shell": "ttyS1", "cold": "vda",
                   "server": f"--listen 0.0.0.0:{PORT} --quiet --keys 20000 --durability commit "
                             "--log-dir /cold/log --recover"})
            for i, name in enumerate(VMS)]


def traces():
    """Lines for the placers (ebb-placed(8))."""
    return ["vm,step_s,cpu,memory,disk"] + [
        f"earlier{i},{STEP_S},{cpu},{MEMORY_MIB},{DISK_MIB}"
        for i, cpu in enumerate(EARLIER) for _ in range(DAYS_S // STEP_S)]
