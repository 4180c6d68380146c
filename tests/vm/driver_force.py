# SPDX-License-Identifier: GPL-2.0-or-later
"""Memory that the host takes by force while something in the guest is slow.

Tests of tests/vm/driver, which gives each of them its rig.
"""

import random
import time

from driver_mem import (BLOCK, MEM, MIB, Holder, add, check, device_of_pool, expect_look, offer,
                        wait_home, wait_pools)
from guest_vm import until

MAX_INFLIGHT = 32       # requests that the control device works on: VIRTIO_EBB_MAX_INFLIGHT
CONFIRM_WAIT_S = 5      # how long the driver waits for the answer to a confirmation
TRIES = 3
F_LEAVE = 1 << 3        # VIRTIO_EBB_F_LEAVE among the features
LEAVE_ROUNDS = 5


def set_bus_master(rig, node, is_on):
    """A pool's device may (not) use the guest's memory: without that it answers nothing."""
    config = f"/sys/bus/virtio/devices/{device_of_pool(rig, node)}/../config"
    rig.ok(f"c=$(hexdump -s 4 -n 1 -e '\"%d\"' {config}); "
           f"printf \"\\\\$(printf %o $(({'c | 4' if is_on else 'c & ~4'})))\" | "
           f"dd of={config} bs=1 seek=4 conv=notrunc 2>/dev/null")


def rebind(rig, node):
    """The device has lost its status with its bus mastering: only a reset puts that right."""
    driver, dev = "/sys/bus/virtio/drivers/ebb_pool", device_of_pool(rig, node)
    rig.ok(f"echo {dev} >{driver}/unbind; echo {dev} >{driver}/bind")


def has_ended(rig, out):
    return "yes" in rig.ok(f"grep -q ^rc {out} && echo yes || echo no")


def test_force_slow_device(rig):
    """A pool's device that does not answer delays no unmapping, and is used again afterwards."""
    held, other = Holder(rig, 16 * MIB, 0), Holder(rig, 16 * MIB, 1)
    wait_pools(rig, "the leases", lambda p: p[0]["held"] == p[1]["held"] == 16 * MIB)
    set_bus_master(rig, 0, False)
    try:
        rig.begin(f"{MEM} add {BLOCK} 0", "/tmp/slow")
        # It sleeps where no signal wakes it: the device was asked.
        rig.ok(until("grep -q 'State:.D' $(ls -d /proc/[0-9]*/comm | xargs grep -l ebbt-mem | "
                     "sed s/comm/status/) 2>/dev/null", ":"))
        rig.agent.revoke(0, 0)
        rig.agent.revoke(1, 0)
        for holder in held, other:
            rig.until("still mapped", lambda h=holder: h.look()["gone"] == 8)
        check(not has_ended(rig, "/tmp/slow"), "unmapped only when nobody waited for the device")
        wait_pools(rig, "confirmed", lambda p: not p[0]["unconfirmed"] + p[1]["unconfirmed"])
        out = rig.end_of("/tmp/slow")
        check("EAGAIN" in out, out)
    finally:
        set_bus_master(rig, 0, True)
    held.kill()
    other.kill()
    # What it was asked to plug it plugs now, for nobody.
    wait_home(rig)
    rig.until("the pool is lost", lambda: rig.vm.run(f"{MEM} add {BLOCK} 0")[0] == 0)
    check(add(rig, 64 * MIB, 0)["granted"] == 64 * MIB, "not all that is on offer")
    wait_home(rig)
    rebind(rig, 0)
    check(add(rig, 64 * MIB, 0)["granted"] == 64 * MIB, "not working after a reset")
    wait_home(rig)


def test_force_slow_release(rig):
    """The same with blocks that are on their way back when the device stops answering."""
    held, other = Holder(rig, 16 * MIB, 0), Holder(rig, 8 * MIB, 0)
    wait_pools(rig, "the leases", lambda p: p[0]["held"] == 24 * MIB)
    set_bus_master(rig, 0, False)
    try:
        held.kill()
        rig.agent.revoke(0, 4 * MIB)
        rig.until("still mapped", lambda: other.look()["gone"] == 4)
        out = rig.ok(until("dmesg | grep -q 'ebb_pool.*answer'", "dmesg | grep 'ebb_pool.*answer'"))
        check("waiting on" in out and "not used any more" not in out, out)
    finally:
        set_bus_master(rig, 0, True)
    other.kill()
    wait_home(rig)
    rebind(rig, 0)


def test_force_full_slots(rig):
    """Programs that fill all places for requests delay no unmapping of another pool.

    The pool that was revoked first waits to confirm. One of some tries has to be quick, so that
    a machine that is busy for a moment does not matter; before, none was.
    """
    took_s = []
    for _ in range(TRIES):
        held, other = Holder(rig, 8 * MIB, 0), Holder(rig, 8 * MIB, 1)
        wait_pools(rig, "the leases", lambda p: p[0]["held"] == p[1]["held"] == 8 * MIB)
        num = len(rig.agent.held_back)
        rig.agent.behave.extend(["silent"] * MAX_INFLIGHT)
        rig.ok(f"for i in $(seq {MAX_INFLIGHT}); do /ebb/tests/ebbt-cpu add 1 "
               ">/dev/null 2>&1 & done")
        rig.agent.wait("all requests", lambda a, n=num: len(a.held_back) == n + MAX_INFLIGHT)
        rig.agent.revoke(0, 0)
        rig.until("still mapped", lambda h=held: h.look()["gone"] == 4)
        at = rig.agent.revoke(1, 0)
        rig.until("still mapped", lambda h=other: h.look()["gone"] == 4)
        took_s.append(time.monotonic() - at)
        rig.ok("killall -9 ebbt-cpu")
        rig.agent.release_held_back()
        held.kill()
        other.kill()
        wait_home(rig)
        rig.wait_home()
        if took_s[-1] < CONFIRM_WAIT_S / 2:
            break
    print(f"    unmapped after {took_s} s")
    check(took_s[-1] < CONFIRM_WAIT_S / 2, f"unmapped only after {took_s} s")
    offer(rig)



def stats(rig):
    return rig.agent.qmp.run("query-ebb")[0]["stats"]


def test_leave_no_zero(rig):
    """What the guest is told of in time it unplugs itself: nobody reads zeroes, ever."""
    check(rig.agent.can_leave, "the device does not know of it")
    before = stats(rig)
    wrong = {"wrong_reads": 0, "wrong_writes": 0}
    for _ in range(LEAVE_ROUNDS):
        held = Holder(rig, 64 * MIB, 0, "watch", "/dev/vda")
        wait_pools(rig, "the lease", lambda p: p[0]["held"] == 64 * MIB)
        rig.agent.set_mem_limits({0: 8 * MIB, 1: 64 * MIB})
        rig.agent.leave(0, 8 * MIB)
        wait_pools(rig, "unplugged", lambda p: p[0]["held"] == 8 * MIB)
        look = held.look()
        check(look["gone"] == 28, f"{look}")
        for what in wrong:
            wrong[what] += look[what]
        held.kill()
        offer(rig)
        wait_home(rig)
    check(not any(wrong.values()), f"zeroes: {wrong}")
    now = stats(rig)
    check(now["leaving"] - before["leaving"] == LEAVE_ROUNDS * 56 * MIB and
          now["revoked"] == before["revoked"], f"{before} {now}")


def test_leave_in_use(rig):
    """What the kernel still uses stays, intact, until it lets go or the host takes it."""
    before = stats(rig)
    held = Holder(rig, 8 * MIB, 0, "pipe")
    wait_pools(rig, "the lease", lambda p: p[0]["held"] == 8 * MIB)
    rig.agent.leave(0, 0)
    wait_pools(rig, "all but one unplugged", lambda p: p[0]["held"] == BLOCK)
    expect_look(held.look(), 0, 4)
    check(stats(rig)["revoked"] == before["revoked"], "taken too early")
    rig.agent.revoke(0, 0)
    wait_pools(rig, "the last one taken",
               lambda p: not p[0]["held"] and p[0]["unconfirmed"] == BLOCK)
    check(stats(rig)["revoked"] - before["revoked"] == BLOCK, f"{before} {stats(rig)}")
    held.kill()
    wait_home(rig)
    check(add(rig, 64 * MIB, 0)["granted"] == 64 * MIB, "not all that is free again")
    wait_home(rig)


def test_leave_in_pieces(rig):
    """More pieces than fit in an event."""
    offer(rig, {0: 400 * MIB, 1: 0})
    held = Holder(rig, 400 * MIB, 0, "comb")
    wait_pools(rig, "a comb", lambda p: p[0]["held"] == 200 * MIB)
    at = rig.agent.leave(0, 10 * MIB)
    wait_pools(rig, "unplugged", lambda p: p[0]["held"] == 10 * MIB)
    print(f"    95 pieces unplugged after {(rig.agent.pools_at - at) * 1000:.1f} ms")
    expect_look(held.look(), 5, 195)
    held.kill()
    offer(rig)
    wait_home(rig)


def test_leave_and_release(rig):
    """Both at once, many times, with what leaves taken soon after, or not."""
    rng = random.Random(7)
    for _ in range(20):
        held = Holder(rig, 32 * MIB, 0)
        rig.ok(f"(sleep 0.0{rng.randrange(10)}; kill -9 {held.pid}) >/dev/null 2>&1 &")
        time.sleep(rng.uniform(0, 0.1))
        target = rng.randrange(17) * BLOCK
        rig.agent.leave(0, target)
        if rng.randrange(2):
            time.sleep(rng.uniform(0, 0.02))
            rig.agent.revoke(0, target)
        wait_home(rig)
    rig.until("blocks can not be had again", lambda: add(rig, 64 * MIB, 0)["granted"] == 64 * MIB)
    wait_home(rig)


def test_no_leaving(rig):
    """A device that does not know of it: the driver does as it always did."""
    check(not rig.agent.can_leave and not rig.json("info")["features"] & F_LEAVE,
          "the device knows of it")
    offer(rig)
    held = Holder(rig, 16 * MIB, 0)
    wait_pools(rig, "the lease", lambda p: p[0]["held"] == 16 * MIB)
    rig.agent.revoke(0, 6 * MIB)
    wait_pools(rig, "revoked and confirmed",
               lambda p: p[0]["held"] == 6 * MIB and not p[0]["unconfirmed"])
    expect_look(held.look(), 3, 5)
    held.kill()
    wait_home(rig)


TESTS = [test_force_slow_device, test_force_slow_release, test_force_full_slots,
         test_leave_no_zero, test_leave_in_use, test_leave_in_pieces, test_leave_and_release]
