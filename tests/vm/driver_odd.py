# SPDX-License-Identifier: GPL-2.0-or-later
"""VMs that ebb.ko can serve in part only, or must not touch: tests of tests/vm/driver.

Each gets the rig of tests/vm/driver, in a VM of its own kind.
"""

import json

MIB = 1 << 20
CPU = "/ebb/tests/ebbt-cpu -t 60000"
MEM = "/ebb/tests/ebbt-mem"

# The third word is the size of the pool's blocks.
SMALL_BLOCKS = {"ua-ebb-pool0": (0, 1024 * MIB, "1M"), "ua-ebb-pool1": (1, 256 * MIB)}

# Where the kernel that crashed would have left the description of its memory: no RAM of this VM,
# so that Linux may map it.
CRASH_KERNEL = "elfcorehdr=0x20000000"


def check(is_good, what):
    if not is_good:
        raise AssertionError(what)


def test_small_blocks(rig):
    """A pool whose blocks can not be leased is not used; CPUs and the other pool are."""
    added = rig.json("add 2 1")
    check(added["granted"] == 2, f"{added}")
    info = json.loads(rig.ok(f"{MEM} info"))
    check([p["node"] for p in info["pools"]] == [1], f"{info}")
    rig.agent.set_mem_limits({0: 64 * MIB, 1: 32 * MIB})
    rig.until("new limits", lambda: json.loads(rig.ok(f"{MEM} info"))["limits"][1]["limit"] ==
              32 * MIB)
    info = json.loads(rig.ok(f"{MEM} info"))
    check(info["limits"][0]["limit"] == 0, f"{info}")
    rc, out = rig.vm.run(f"{MEM} add {4 * MIB} 0")
    check(rc == 1 and ": ENXIO (" in out, f"a lease on a node without a usable pool: {out}")
    check(json.loads(rig.ok(f"{MEM} add {4 * MIB} 1"))["granted"] == 4 * MIB, "no lease")
    rig.ok("dmesg | grep -q 'pool not used: its blocks of 1024 KiB'")


def test_crash_kernel(rig):
    """The kernel that saves another one's memory loads no driver of ours, and resets no device."""
    rc, out = rig.vm.run("insmod /lib/modules/ebb.ko")
    check(rc != 0 and "No such device" in out, f"loaded in a crash kernel: {rc} {out}")
    check(not rig.agent.has_driver, "the device has a driver")
    rig.ok("dmesg | grep -q 'crash kernel, its devices are left alone'")
