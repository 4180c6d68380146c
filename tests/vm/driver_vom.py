# SPDX-License-Identifier: GPL-2.0-or-later
"""The value of memory: tests of tests/vm/driver that play a host which asks for it.

Each gets the rig of tests/vm/driver, in a VM whose device can be told; test_no_values is for one
whose device can not.
"""

import json

from fake_agent import LIMIT_S, NODE_ANY

VOM = "/ebb/tests/ebbt-vom"
F_VOM = 1 << 2
MAX_BUCKETS = 512


def check(is_good, what):
    if not is_good:
        raise AssertionError(what)


def limits(rig):
    return json.loads(rig.ok(f"{VOM} limits"))


def refused(rig, args, errno_name):
    num = len(rig.agent.voms)
    rc, out = rig.vm.run(f"{VOM} {args}")
    check(rc == 1 and f": {errno_name} (" in out, f"{args}: not {errno_name}: {rc} {out}")
    check(len(rig.agent.voms) == num, f"{args}: it came all the same")


def send(rig, args, want):
    """What a program sends reaches the agent as it is: want is (seq, [(value, kib, node), ...]).

    On a machine that stands still for a while, two may come to the device within a second that
    left the driver more than one apart, and the device drops the second: then it is sent again.
    """
    num = len(rig.agent.voms)
    for is_last in False, False, True:
        rig.ok(f"{VOM} {args}")
        try:
            rig.agent.wait("a histogram", lambda a: len(a.voms) > num, LIMIT_S / 4)
            break
        except AssertionError:
            check(not is_last, f"{args}: it does not come")
    check(rig.agent.voms[num:] == [want], f"{rig.agent.voms[num:]} instead of {want}")


def filled(seq, count):
    half = count // 2
    return seq, [(1000 * (i if i < half else i - half), i + 1, int(i >= half))
                 for i in range(count)]


def test_vom_ask(rig):
    """A question is seen by poll(), and lasts."""
    check(rig.agent.can_vom and rig.json("info")["features"] & F_VOM, "the device can not be told")
    rig.watch("/tmp/p")
    seen = len(rig.watched("/tmp/p"))
    for seq, cutoffs in (3, {0: 1 << 63, 1: 7}), (4, {1: 12345}), (2, {}):
        rig.agent.ask_vom(seq, cutoffs)
        rig.until("not asked", lambda s=seq, c=cutoffs: limits(rig) ==
                  {"vom_seq": s, "cutoffs": [c.get(n, 0) for n in (0, 1)]})
        rig.until("not heard of by poll", lambda s=seen: len(rig.watched("/tmp/p")) > s)
        seen = len(rig.watched("/tmp/p"))
    rig.ok("killall ebbt-cpu")
    rig.agent.ask_vom(0)
    rig.until("still asked", lambda: limits(rig)["vom_seq"] == 0)


def test_vom_send(rig):
    send(rig, "send 5", (5, []))
    send(rig, "send 6 0:64:0", (6, [(0, 64, 0)]))
    send(rig, "send 4294967295 0:1:0 18446744073709551615:4294967295:0 3:2:1",
         (4294967295, [(0, 1, 0), ((1 << 64) - 1, (1 << 32) - 1, 0), (3, 2, 1)]))
    send(rig, f"fill 8 {MAX_BUCKETS}", filled(8, MAX_BUCKETS))
    send(rig, "fill 9 7", filled(9, 7))


def test_vom_bad(rig):
    refused(rig, "send 0 0:64:0", "EINVAL")
    refused(rig, f"fill 1 {MAX_BUCKETS + 1}", "EINVAL")
    refused(rig, "fill 1 4294967295", "EINVAL")
    refused(rig, "send 1 5:64:0 5:64:0", "EINVAL")
    refused(rig, "send 1 5:64:0 4:64:0", "EINVAL")
    refused(rig, "send 1 5:64:1 6:64:0", "EINVAL")
    refused(rig, "send 1 5:0:0", "EINVAL")
    refused(rig, "send 1 5:64:2", "EINVAL")
    refused(rig, f"send 1 5:64:{NODE_ANY}", "EINVAL")


def sends(rig, args, want):
    rig.ok(f"{VOM} {args}")
    return rig.agent.voms[-1:] == [want]


def test_vom_flood(rig):
    """What is told too often does not leave the guest."""
    num = len(rig.agent.voms)
    told = json.loads(rig.ok(f"{VOM} flood 11 2000"))
    check(told["sent"] + told["busy"] == 2000 and told["busy"], f"{told}")
    check(len(rig.agent.voms) <= num + told["sent"], f"{told} {len(rig.agent.voms) - num}")
    rig.until("the last one does not come", lambda: sends(rig, "fill 12 3", filled(12, 3)))


def test_vom_agent_restart(rig):
    """What is told without an agent is lost; the next agent asks again, and is told."""
    rig.stop_agent()
    num = len(rig.agent.voms)
    rig.ok(f"{VOM} fill 20 2")
    rig.agent.vom_seq = 21
    rig.agent.cutoffs = {0: 99}
    rig.agent.start()
    rig.wait_agent_up()
    rig.until("not asked by the new agent",
              lambda: limits(rig) == {"vom_seq": 21, "cutoffs": [99, 0]})
    check(rig.agent.can_vom and len(rig.agent.voms) == num, f"{rig.agent.voms[num:]}")
    send(rig, "fill 21 5", filled(21, 5))
    rig.agent.ask_vom(0)


def test_vom_unload(rig):
    """A histogram is freed with the queue that it is in, and a new driver hears the question."""
    rig.agent.ask_vom(31, {1: 5})
    rig.ok(f"{VOM} fill 30 4")
    rig.unload()
    rig.agent.wait("no driver", lambda a: not a.has_driver and not a.can_vom)
    rig.ok("insmod /lib/modules/ebb.ko")
    rig.agent.wait("driver", lambda a: a.has_driver and a.can_vom)
    rig.until("not asked", lambda: limits(rig) == {"vom_seq": 31, "cutoffs": [0, 5]})
    send(rig, "fill 31 4", filled(31, 4))
    rig.agent.ask_vom(0)


def test_no_values(rig):
    """A device that knows nothing of it."""
    check(not rig.agent.can_vom and not rig.json("info")["features"] & F_VOM, "it does")
    rig.agent.ask_vom(5, {0: 6, 1: 7})
    rig.until("the newest limits are not here",
              lambda: rig.json("limits")["generation"] == rig.agent.generation)
    check(limits(rig) == {"vom_seq": 0, "cutoffs": [0, 0]}, f"{limits(rig)}")
    refused(rig, "fill 5 4", "EOPNOTSUPP")
    rig.agent.ask_vom(0)


TESTS = [test_vom_ask, test_vom_send, test_vom_bad, test_vom_flood, test_vom_agent_restart,
         test_vom_unload]
