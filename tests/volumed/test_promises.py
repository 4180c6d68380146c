# SPDX-License-Identifier: GPL-2.0-or-later
"""What tenants are promised, on a disk of 500 requests per second that is the bottleneck."""
import time

from harness.lab import nbd
from rig import VolumeCase

DISK = 500
# Requests open, and connections: enough for a fifth of a second in which a client does not run.
DEEP = 64, 4


class Promises(VolumeCase):
    def begin(self, **promises):
        self.settings["depth"] = 8
        self.volume("a", reserve_iops=300)
        self.volume("b", reserve_iops=100)
        self.volume("flood", weight=10000)
        for name, keys in promises.items():
            self.volume(name, **keys)
        self.start(iops=DISK)
        self.loads = []

    def load(self, volume, depth, connections=1, commands=(nbd.CMD_READ,)):
        self.loads += nbd.loads(self.nbd, volume, depth, connections, commands)

    def tearDown(self):
        for load in self.loads:
            load.stop()
        for load in self.loads:
            self.assertIsNone(load.lost)
        super().tearDown()

    def kept(self, got, volume):
        """Return which part of its promise a volume got, over the time in which a request of it
        waited, and of what the disk did: on a busy machine neither client nor disk keeps pace."""
        of, whole = got[volume], sum(v["issued-units"] for v in got.values())
        busy = max(v["busy-us"] for v in got.values())
        disk = min(1, whole * 1e6 / (DISK * busy))
        promised = of["promised-microunits"] / 1e6 * of["waiting-us"] / of["busy-us"]
        return of["issued-units"] / (promised * disk)

    def test_beside_a_flood_of_depth_1000(self):
        self.begin()
        self.load("a", *DEEP)
        self.load("b", *DEEP)
        # 63 connections with 16 requests each, of which the server takes all.
        self.load("flood", 1008, 63)
        time.sleep(0.5)
        got = self.counted(4)
        self.assertGreater(self.kept(got, "a"), 0.97, got)
        self.assertGreater(self.kept(got, "b"), 0.97, got)
        # The rest is the flood's, whose weight is a hundred times theirs.
        whole = sum(v["issued"] for v in got.values())
        self.assertAlmostEqual(got["a"]["issued"] / whole, 0.6, delta=0.03)
        self.assertAlmostEqual(got["b"]["issued"] / whole, 0.2, delta=0.03)
        self.assertGreaterEqual(self.meters()["flood"]["queued"], 900)

    def test_beside_a_flood_of_discards_and_zeroes(self):
        self.begin()
        self.load("a", *DEEP)
        self.load("b", *DEEP)
        self.load("flood", 256, 16, (nbd.CMD_TRIM, nbd.CMD_ZEROES))
        time.sleep(0.5)
        got = self.counted(4)
        # By what the disk has done, whether it was ordered or not.
        whole = sum(v[kind] for v in got.values()
                    for kind in ("reads", "writes", "discards", "zeroes"))
        self.assertAlmostEqual(got["a"]["reads"] / whole, 0.6, delta=0.03, msg=got)
        self.assertAlmostEqual(got["b"]["reads"] / whole, 0.2, delta=0.03, msg=got)
        self.assertGreater(got["flood"]["discards"], 0, got)
        self.assertGreater(self.meters()["flood"]["queued"], 200)

    def test_changed_promises(self):
        self.begin()
        for volume in ("a", "b", "flood"):
            self.load(volume, *DEEP)
        self.done("volume-set", volume="a", reserve_iops=100)
        self.done("volume-set", volume="b", reserve_iops=300)
        got = self.counted(2)
        self.assertGreater(self.kept(got, "b"), 0.97, got)
        self.assertAlmostEqual(got["b"]["issued"] / got["a"]["issued"], 3, delta=0.3)

    def test_overbooked(self):
        self.begin(a={"reserve_iops": 600}, b={"reserve_iops": 200})
        for volume in ("a", "b", "flood"):
            self.load(volume, *DEEP)
        time.sleep(0.5)
        got = self.counted(3)
        self.assertAlmostEqual(self.kept(got, "a"), 500 / 800, delta=0.04)
        self.assertAlmostEqual(self.kept(got, "b"), 500 / 800, delta=0.04)
        self.done("volume-set", volume="b", penalty=50)
        self.done("scheduler", overbooking="penalty")
        time.sleep(0.5)
        got = self.counted(3)
        self.assertGreater(self.kept(got, "b"), 0.96, got)
        self.assertAlmostEqual(self.kept(got, "a"), 300 / 600, delta=0.04)

    def test_maximum_and_drain(self):
        self.begin()
        self.done("volume-set", volume="b", reserve_iops=None, max_iops=20)
        self.load("b", 16)
        time.sleep(0.5)
        for _ in range(5):
            issued = self.counted(3)["b"]["issued"]
            self.assertLessEqual(issued, 66)
            # Fewer than 20 a second only while the machine does something else.
            if issued >= 54:
                break
        self.assertGreaterEqual(issued, 54)
        # Requests that wait for a maximum must not keep the server from ending.
        self.done("volume-set", volume="b", max_iops=1)
        begun = time.monotonic()
        self.stop(self.servers[0])
        self.assertLess(time.monotonic() - begun, 5)
        for load in self.loads:
            load.join()
        self.loads.clear()

    def test_large_requests_are_charged_by_size(self):
        self.begin(flood={"max_bytes": 8 << 20})
        self.loads += [nbd.Load(self.nbd, "flood", 4, 4 << 20)]
        self.loads[0].start()
        time.sleep(1)
        got = self.counted(3)
        self.assertAlmostEqual(got["flood"]["read-bytes"] / (3 * 8 << 20), 1, delta=0.35)
