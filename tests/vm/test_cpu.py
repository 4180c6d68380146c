# SPDX-License-Identifier: GPL-2.0-or-later
"""One VM and what an application in it can do with CPUs, on both guest kernels."""
import re
import unittest

from .rig import SERIES, VmTest


class AddAndRemove(VmTest):
    def rounds(self, series):
        g = self.guest(f"rounds-{series}", series=series).start()
        rounds = g.test("loop 20")
        self.assertEqual([r["round"] for r in rounds], list(range(20)))
        self.assertTrue(all(r["granted"] == 1 for r in rounds))
        g.wait_held(1)
        self.assertEqual(g.online(), "0")
        self.assertEqual(g.plugged(), [0])
        self.assertEqual(len(g.history("grant")), 20)
        self.assertEqual(len(g.history("release")), 20)

    def test_20_times_on_6_1(self):
        self.rounds(SERIES[0])

    def test_20_times_on_6_12(self):
        self.rounds(SERIES[1])


class OneGuest(VmTest):
    """Tests that leave the guest as it was share one boot."""

    def test_life_with_the_device(self):
        g = self.guest("one", cells=((3, 1), (2, 0)), options={"monitor": 0}).start()
        for part in (self.startup_is_protected, self.grant_is_partial, self.node_is_respected,
                     self.wrong_requests, self.owner_dies, self.lent_are_had_again,
                     self.owners_do_not_mix,
                     self.module_is_reloaded, self.abi):
            with self.subTest(part.__name__):
                g.wait_held(1)
                part(g)
        g.wait_held(1)

    def startup_is_protected(self, g):
        self.assertIn("EPERM", g.refused("remove 0"))

    def grant_is_partial(self, g):
        (answer,) = g.test("add 30")
        self.assertEqual(answer["granted"], 4)
        self.assertEqual(sorted(c["node"] for c in answer["cpus"]), [0, 0, 1, 1])

    def node_is_respected(self, g):
        (answer,) = g.test("add 5 1")
        self.assertEqual([c["node"] for c in answer["cpus"]], [1, 1])

    def wrong_requests(self, g):
        for args, error in (("add 0", "EINVAL"), ("add 33", "EINVAL"), ("add 1 2", "ENXIO"),
                            ("add 1 4000000000", "ENXIO"), ("remove 40", "ENOENT"),
                            ("remove 4000000000", "ENOENT"), ("-t 60001 add 1", "EINVAL")):
            with self.subTest(args):
                self.assertIn(error, g.refused(args))

    def owner_dies(self, g):
        out, answer = g.hold("hold 2")
        self.assertEqual(answer["granted"], 2)
        g.wait_held(3)
        g.end(out)
        g.wait_held(1)
        # Those that other parts of this test have had are lent, too.
        g.wait_lent()
        self.assertLessEqual({c["cpu"] for c in answer["cpus"]}, set(g.lent()))
        self.assertEqual(len(g.plugged()), 1 + len(g.lent()))

    def lent_are_had_again(self, g):
        plugged, lends = len(g.plugged()), len(g.history("lend"))
        for how in "lend", "park":
            rounds = g.test(f"loop 10 {plugged - 1} any {how}")
            self.assertTrue(all(r["granted"] == plugged - 1 for r in rounds))
            g.wait_held(1)
        # Each is kept in the guest all the time, and the agent has a record of each lending.
        self.assertEqual(len(g.plugged()), plugged)
        self.assertEqual(len(g.history("lend")), lends + 20 * (plugged - 1))
        self.assertEqual(g.online(), "0")
        self.assertTrue(all(c["parked"] for c in g.cpus() if not c["startup"]))

    def owners_do_not_mix(self, g):
        first, a = g.hold("hold 1 0")
        second, b = g.hold("hold 1 1")
        theirs = b["cpus"][0]["cpu"]
        self.assertNotEqual(a["cpus"][0]["cpu"], theirs)
        self.assertIn("EACCES", g.refused(f"remove {theirs}"))
        g.end(first)
        g.wait_held(2)
        self.assertEqual([c["cpu"] for c in g.cpus() if not c["startup"] and not c["lent"]],
                         [theirs])
        g.end(second)

    def module_is_reloaded(self, g):
        out, _ = g.hold("hold 2")
        self.assertNotEqual(g.call("rmmod ebb")[0], 0, "in use")
        g.end(out)
        g.must("for i in $(seq 240); do rmmod ebb && break; sleep 0.5; done; "
               "[ ! -e /dev/ebb ] && insmod /lib/modules/ebb.ko && ls /dev/ebb")
        g.wait_driver()

    def abi(self, g):
        for name in ("ebbt-abi-ioctl", "ebbt-abi-ioctl32"):
            with self.subTest(name):
                out = g.must(f"/ebb/tests/{name}")
                self.assertIn("[  PASSED  ]", out)


class NoDevice(VmTest):
    def test_driver_without_device(self):
        g = self.guest("bare")
        g.define(lambda text: re.sub(r"\{[^{}]*virtio-ebb-pci[^{}]*\}",
                                     "virtio-ebb-pci.rate-limit=1000",
                                     text.replace("-device", "-global")))
        g.start(driver=False)
        self.assertNotEqual(g.call("ls /dev/ebb")[0], 0)
        status, out = g.call("/ebb/tests/ebbt-cpu info")
        self.assertEqual(status, 1)
        self.assertIn("ENOENT", out)
        g.must("rmmod ebb && insmod /lib/modules/ebb.ko")


class EmulatedHost(VmTest):
    def test_on_cgroup_v2(self):
        g = self.guest("v2", cells=((2, 2), (1, 0))).start()
        self.assertIn("ok", g.must("/ebb/tests/ebbt-emuhost"))


if __name__ == "__main__":
    unittest.main()
