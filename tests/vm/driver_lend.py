# SPDX-License-Identifier: GPL-2.0-or-later
"""Lending and parking of CPUs: tests of tests/vm/driver in a VM whose device can do that.

Each gets the rig of tests/vm/driver and leaves the VM with the CPU that it booted with.
"""

import json
import time

from fake_agent import LIMIT_S
from guest_vm import until

# With the longest waits that the driver allows, where a test does not say otherwise.
CPU = "/ebb/tests/ebbt-cpu -t 60000"
F_LEND = 1 << 1
TIER_LEND, TIER_UNPLUG = 1, 3
ALL_LIMITS = {0: 4, 1: 4}


def check(is_good, what):
    if not is_good:
        raise AssertionError(what)


def cpus(rig):
    """{number: CPU} outside the startup set."""
    return {c["cpu"]: c for c in rig.json("list")["cpus"] if not c["startup"]}


def wait_lent(rig, count):
    """So many CPUs are lent and online, or parked, and no others are there."""
    end = time.monotonic() + LIMIT_S
    while True:
        # The agent is asked first: what the guest says next is newer than what it lent by then.
        is_lent = len(rig.agent.lent) == count
        now = cpus(rig)
        parked = [n for n, c in now.items() if c["parked"]]
        is_settled = is_lent and not rig.json("info")["num_hotplug_cpus"] and \
            len(now) == count and all(c["lent"] for c in now.values())
        if is_settled and rig.online() == online_list(set(now) - set(parked)):
            return now
        check(time.monotonic() < end, f"not {count} lent: {now} agent {rig.agent.lent} "
              f"online {rig.online()} {rig.agent.log[-8:]}")
        time.sleep(0.05)


def online_list(numbers):
    """As Linux writes it, with CPU 0."""
    words, run = [], []
    for n in sorted({0} | set(numbers)):
        if run and n != run[-1] + 1:
            words.append(run)
            run = []
        run.append(n)
    words.append(run)
    return ",".join(str(r[0]) if len(r) == 1 else f"{r[0]}-{r[-1]}" for r in words)


def empty(rig):
    """Unplug what is lent."""
    for number in cpus(rig):
        rig.ok(f"{CPU} remove {number}")
    rig.wait_home()


def sysfs_online(rig, number):
    """Try to bring a CPU online as any program may; returns (worked, its words)."""
    rc, out = rig.vm.run(f"echo 1 >/sys/devices/system/cpu/cpu{number}/online")
    return rc == 0, out


def refuses_online(rig, number):
    """At once and by the driver: Linux has other words for a CPU that does not start in 10 s."""
    worked, out = sysfs_online(rig, number)
    check(not worked and "not permitted" in out, f"CPU {number} online: {worked} {out}")


def print_rounds(out, how):
    """The first round plugs the CPU: it is none of lending."""
    rounds = [json.loads(x) for x in out.splitlines()][1:]
    for what in "add", how:
        times = sorted(r[what]["total_ns"] / 1e6 for r in rounds)
        print(f"    {what}: median {times[len(times) // 2]:.2f} ms, most {times[-1]:.2f} ms, "
              f"n {len(times)}")


def test_lend_info(rig):
    check(rig.agent.can_lend and rig.json("info")["features"] & F_LEND, "the device can not lend")
    rig.agent.tier = TIER_LEND
    rig.agent.set_limits(ALL_LIMITS)
    rig.until("no tier", lambda: [n["tier"] for n in rig.json("limits")["nodes"]] ==
              [TIER_LEND] * 2)
    rig.agent.tier = 0
    rig.agent.set_limits(ALL_LIMITS)


def test_lend_20(rig):
    added = rig.agent.num_added
    out = rig.ok(f"{CPU} loop 20 1 any lend")
    check(out.count('"granted":1') == 20, out)
    print_rounds(out, "lend")
    check(rig.agent.num_added == added + 1, "plugged more than once")
    wait_lent(rig, 1)
    empty(rig)


def test_lend_several(rig):
    added = rig.agent.num_added
    out = rig.ok(f"{CPU} loop 5 7 any lend")
    check(out.count('"granted":7') == 5, out)
    check(rig.agent.num_added == added + 7, "plugged more than once")
    wait_lent(rig, 7)
    pid, held = rig.hold("2 1")
    check(all(cpus(rig)[n]["node"] == 1 for n in held), "not of the node that was asked for")
    rig.ok(f"kill {pid}")
    wait_lent(rig, 7)
    empty(rig)


def test_lend_refusals(rig):
    rig.fails("lend 0", "EPERM")
    rig.fails("park 0", "EPERM")
    rig.fails("lend 5", "ENOENT")
    pid, held = rig.hold("1")
    rig.fails(f"lend {held[0]}", "EACCES")
    rig.fails(f"park {held[0]}", "EACCES")
    rig.ok(f"kill {pid}")
    wait_lent(rig, 1)
    # It is for its last owner, who is gone, and for administrators; lending it changes nothing.
    rig.fails(f"-u park {held[0]}", "EACCES")
    rig.fails(f"-u remove {held[0]}", "EACCES")
    rig.ok(f"{CPU} -u lend {held[0]}")
    rig.ok(f"{CPU} lend {held[0]}")
    rig.ok(f"{CPU} park {held[0]}")
    rig.ok(f"{CPU} park {held[0]}")
    rig.fails(f"lend {held[0]}", "EBUSY")
    check(wait_lent(rig, 1)[held[0]]["parked"], "not parked")
    empty(rig)


def test_killed_holder_lends(rig):
    pid, held = rig.hold("3")
    rig.ok(f"kill -9 {pid}")
    wait_lent(rig, 3)
    check(rig.online() == "0-3", rig.online())
    added = rig.agent.num_added
    pid, again = rig.hold("3")
    check(sorted(again) == sorted(held) and rig.agent.num_added == added, "not those lent")
    check(not any(c["lent"] for c in cpus(rig).values()), "held and lent")
    rig.ok(f"kill {pid}")
    wait_lent(rig, 3)
    empty(rig)


def test_park_10(rig):
    added = rig.agent.num_added
    out = rig.ok(f"{CPU} loop 10 1 any park")
    check(out.count('"granted":1') == 10, out)
    print_rounds(out, "park")
    check(rig.agent.num_added == added + 1, "plugged more than once")
    check(all(c["parked"] for c in wait_lent(rig, 1).values()), "not parked")
    check(rig.online() == "0", rig.online())
    empty(rig)


def test_park_then_sysfs(rig):
    parked = rig.json("keep 2 park")["cpus"]
    wait_lent(rig, 2)
    for c in parked:
        refuses_online(rig, c["cpu"])
    check(all(c["parked"] for c in wait_lent(rig, 2).values()), "not parked any more")
    # Another CPU is plugged and brought online meanwhile, and those come up when they are granted.
    pid, held = rig.hold("3")
    check(rig.online() == online_list(held), rig.online())
    rig.ok(f"kill {pid}")
    wait_lent(rig, 3)
    # What is lent only, Linux may do with as it likes.
    rig.ok(f"echo 0 >/sys/devices/system/cpu/cpu{held[0]}/online")
    check(sysfs_online(rig, held[0])[0], "what is lent can not be brought online")
    empty(rig)


def test_unplug_of_lent_and_parked(rig):
    lent = rig.json("keep 3 lend")["cpus"]
    wait_lent(rig, 3)
    rig.ok(f"{CPU} park {lent[1]['cpu']}")
    now = wait_lent(rig, 3)
    check([n for n, c in now.items() if c["parked"]] == [lent[1]["cpu"]], f"{now}")
    for c in lent:
        rig.ok(f"{CPU} remove {c['cpu']}")
    rig.wait_home()
    # Nothing is left of the parking: the same CPUs come and go as ever.
    out = rig.ok(f"{CPU} loop 2 3")
    check(out.count('"granted":3') == 2, out)
    rig.wait_home()


def test_hand_over(rig):
    rig.agent.hand_over(2)
    rig.agent.hand_over(5)
    now = wait_lent(rig, 2)
    check(sorted(c["node"] for c in now.values()) == [0, 1], f"{now}")
    added = rig.agent.num_added
    got = rig.json("add 2")
    print(f"    add of 2: host {got['host_ns'] / 1e6:.2f} ms, "
          f"kernel {got['kernel_ns'] / 1e6:.2f} ms")
    check({c["cpu"] for c in got["cpus"]} == set(now) and rig.agent.num_added == added,
          f"not those handed over: {got}")
    wait_lent(rig, 2)
    empty(rig)
    # Asked for before Linux has seen it.
    for vcpu in 1, 6, 3:
        rig.agent.hand_over(vcpu)
        check(rig.json("add 1")["granted"] == 1, "not granted")
    wait_lent(rig, 3)
    empty(rig)


def test_lend_late_and_refused(rig):
    rig.agent.behave.extend(["", "silent"])
    rig.fails("-g 800 loop 1 1 any lend", "EINPROGRESS")
    check(all(c["leaving"] for c in cpus(rig).values()), f"{cpus(rig)}")
    check(rig.online() == "0-1", "a CPU that is being lent is offline")
    rig.agent.release_held_back()
    wait_lent(rig, 1)
    rig.agent.behave.extend(["", "refuse", "busy"])
    rig.fails("loop 1 1 any lend", "EINPROGRESS")
    wait_lent(rig, 1)
    rig.agent.behave.extend(["", "busy", "refuse"])
    rig.fails("loop 1 1 any park", "EINPROGRESS")
    check(all(c["parked"] for c in wait_lent(rig, 1).values()), "not parked")
    # Interrupted: what was granted too late is lent again.
    rig.agent.behave.append("silent")
    rig.fails("-a 300 add 1", "EINTR")
    rig.agent.release_held_back()
    check(not any(c["parked"] for c in wait_lent(rig, 1).values()), "parked, and granted since")
    empty(rig)


def test_forced_then_lent(rig):
    pid, held = rig.hold("1 0")
    rig.agent.force(sorted(rig.agent.granted)[0])
    rig.until("not forced", lambda: cpus(rig)[held[0]]["forced"])
    rig.ok(f"kill {pid}")
    check(not wait_lent(rig, 1)[held[0]]["forced"], "forced and lent")
    pid, again = rig.hold("1 0")
    check(again == held and not cpus(rig)[held[0]]["forced"], f"{again} {cpus(rig)}")
    rig.ok(f"kill {pid}")
    wait_lent(rig, 1)
    empty(rig)


def test_add_unheard(rig):
    """CPUs that the driver can not tell its caller of are let go, but for one that is another
    open's by then."""
    said = rig.json("unheard")
    check(said == {"error": "EFAULT", "left": 0, "kept": 1}, f"{said}")
    wait_lent(rig, 2)
    empty(rig)


def test_lend_offline_behind_our_back(rig):
    lent = rig.json("keep 2 lend")["cpus"]
    wait_lent(rig, 2)
    rig.ok(f"echo 0 >/sys/devices/system/cpu/cpu{lent[0]['cpu']}/online")
    pid, held = rig.hold("2")
    check(rig.online() == online_list(held), rig.online())
    rig.ok(f"kill {pid}")
    wait_lent(rig, 2)
    empty(rig)


def test_lend_agent_away(rig):
    pid, held = rig.hold("2")
    rig.stop_agent()
    rig.ok(f"kill -9 {pid}")
    rig.until("not leaving", lambda: all(c["leaving"] for c in cpus(rig).values()))
    check(rig.online() == online_list(held), "taken offline for nothing")
    rig.fails("add 1", "EAGAIN")
    rig.agent.start()
    rig.wait_agent_up()
    wait_lent(rig, 2)
    empty(rig)


def test_park_while_others_online(rig):
    noise = rig.online_all()
    try:
        out = rig.ok(f"{CPU} loop 10 2 any park")
        check(out.count('"granted":2') == 10, out)
    finally:
        noise.end()
    check(all(c["parked"] for c in wait_lent(rig, 2).values()), "not parked")
    empty(rig)


def test_lend_chaos(rig):
    """Programs that lend, park, unplug and die, and an agent that comes and goes."""
    rig.chaos(9, 3, "how=$(echo remove lend park | cut -d ' ' -f $n); "
                    f"{CPU} -a $((i * 37 * n % 400 + 5)) -t 700 loop 3 $n any $how & p=$!; "
                    "sleep 0.$((i * n % 9)); kill -9 $p; wait $p; "
                    f"{CPU} -t 700 remove $((i % 7 + 1)); {CPU} -t 700 park $((i * 3 % 7 + 1))")
    rig.until("not settled", lambda: not rig.json("info")["num_hotplug_cpus"])
    check(rig.json("add 7")["granted"] == 7, "not working after all that")
    wait_lent(rig, 7)
    empty(rig)


def test_lend_unload(rig):
    lent = [c["cpu"] for c in rig.json("keep 3 lend")["cpus"]]
    rig.ok(f"{CPU} park {lent[2]}")
    wait_lent(rig, 3)
    deleted = rig.agent.num_deleted
    rig.unload()
    check(rig.online() == online_list(lent[:2]) and rig.agent.num_deleted == deleted,
          f"unloading has unplugged what was lent: {rig.online()}")
    rig.ok("insmod /lib/modules/ebb.ko")
    now = wait_lent(rig, 3)
    check([n for n, c in now.items() if c["parked"]] == [lent[2]], f"{now}")
    refuses_online(rig, lent[2])
    if rig.unload_holding("add 3"):
        rig.agent.wait("all CPUs lent", lambda a: len(a.lent) == 3)
    else:
        print("    unloaded before all CPUs were lent")
    rig.ok("insmod /lib/modules/ebb.ko")
    wait_lent(rig, 3)
    empty(rig)


def test_lend_unload_without_answer(rig):
    rig.agent.behave.extend(["", "silent", "silent", "silent", "silent"])
    # It ends, though nobody answers.
    check(not rig.unload_holding("add 1"), "lent to a host that says nothing")
    rig.agent.behave.clear()
    rig.agent.held_back.clear()
    rig.ok("insmod /lib/modules/ebb.ko")
    wait_lent(rig, 1)
    empty(rig)


def test_lend_reload_finds_orphans(rig):
    pid, _ = rig.hold("2")
    rig.stop_agent()
    rig.ok(f"kill -9 {pid}")
    rig.unload()
    rig.agent.start()
    rig.ok("insmod /lib/modules/ebb.ko")
    wait_lent(rig, 2)
    empty(rig)


def test_lend_reboot(rig):
    lent = rig.json("keep 3 lend")["cpus"]
    wait_lent(rig, 3)
    rig.ok(f"{CPU} park {lent[0]['cpu']}")
    rig.hold("1")
    rig.reboot()
    check(not any(c["parked"] for c in wait_lent(rig, 3).values()), "parked after a reset")
    check(rig.json("add 4")["granted"] == 4, "not working after a reboot")
    wait_lent(rig, 4)
    empty(rig)


def test_lend_device_pulled(rig):
    lent = [c["cpu"] for c in rig.json("keep 3 lend")["cpus"]]
    wait_lent(rig, 3)
    rig.ok(f"{CPU} park {lent[0]}")
    # One is on its way for as long as there is a device.
    rig.agent.behave.extend(["busy"] * 1000)
    rig.fails(f"park {lent[2]}", "EINPROGRESS")
    rig.agent.qmp.run("device_del", id="ebb")
    rig.ok(until("[ ! -e /dev/ebb ]", ":"))
    rig.agent.wait("the reset of the device", lambda a: not a.has_driver)
    check(rig.online() == online_list([lent[1]]), rig.online())
    # What is parked is let go of a moment later.
    for number in lent[0], lent[2]:
        rig.until(f"CPU {number} parked for ever", lambda n=number: sysfs_online(rig, n)[0])
    rig.unload()
    rig.ok("insmod /lib/modules/ebb.ko")


def test_park_restless(rig):
    """The host does not see the CPU rest when it is offline: it is lent only, and online again."""
    if rig.ok("uname -r").startswith("7."):
        # This kernel halts offline CPUs, whatever their vendor: the host sees them rest.
        rig.ok(f"{CPU} loop 1 2 any park")
        check(all(c["parked"] for c in wait_lent(rig, 2).values()), "not parked")
        empty(rig)
        return
    for rounds in 1, 3:
        out = rig.ok(f"{CPU} loop {rounds} 2 any park")
        check(out.count('"granted":2') == rounds, out)
        check(not any(c["parked"] for c in wait_lent(rig, 2).values()), "parked as it runs")
        check(rig.online() == "0-2", rig.online())
    # The same for what its owner does not wait for, and nothing is held offline.
    rig.ok(f"{CPU} park 1")
    rig.ok("echo 0 >/sys/devices/system/cpu/cpu1/online")
    check(sysfs_online(rig, 1)[0], "held offline, and not parked")
    empty(rig)


RESTLESS_TESTS = [test_park_restless]

# The order matters for the last ones only.
TESTS = [
    test_lend_info, test_lend_20, test_lend_several, test_lend_refusals,
    test_killed_holder_lends, test_park_10, test_park_then_sysfs, test_unplug_of_lent_and_parked,
    test_hand_over, test_lend_late_and_refused, test_forced_then_lent, test_add_unheard,
    test_lend_offline_behind_our_back, test_park_while_others_online, test_lend_chaos,
    test_lend_agent_away, test_lend_unload, test_lend_unload_without_answer,
    test_lend_reload_finds_orphans, test_lend_reboot, test_lend_device_pulled,
]
