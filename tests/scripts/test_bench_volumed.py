# SPDX-License-Identifier: GPL-2.0-or-later
"""bench-volumed: what is served, and what follows from what was measured."""
import unittest

import made_up  # noqa: F401: puts scripts/ on the path
from bench import metrics, volumed_cost, volumed_share


def found(rows, name, size, variant="ebb"):
    return next((m for m in rows if (m["name"], m["size"], m["variant"]) == (name, size, variant)),
                None)


class Daemon:
    """Answers what a test wants."""

    def __init__(self, looks):
        self.looks = looks

    def ask(self, command):
        assert command == "query-ebb-volumes"
        return {"volumes": [{"volume": name, "interval": {"age-us": 0}, "counters": {
            "issued-units": units, "waiting-us": waiting, "intervals": 1}}
                            for name, (units, waiting) in self.looks.pop(0).items()]}


class Cost(unittest.TestCase):
    def test_the_same_disk_below_each_filter(self):
        disk = volumed_cost.disk_of("null-co", "/x", 1)
        raw = {"driver": "raw", "file": disk}
        nodes = {v: volumed_cost.volume(v, 1, disk)
                 for v in volumed_cost.SERVED + volumed_cost.IN_PROCESS}
        self.assertEqual(nodes["no tags"], raw)
        self.assertEqual(nodes["disk alone"], disk)
        self.assertEqual((nodes["throttle"]["driver"], nodes["throttle"]["file"]),
                         ("throttle", raw))
        # In the place of the node for raw files, as ebb-volumed has it.
        self.assertEqual((nodes["ebb"]["driver"], nodes["ebb"]["file"]), ("ebb-volume", disk))

    def test_a_node_as_text(self):
        self.assertEqual(volumed_cost.url_of({"driver": "raw", "file": {
            "driver": "file", "cache": {"direct": False}, "size": 7}}),
            "driver=raw,file.driver=file,file.cache.direct=off,file.size=7")

    def test_each_variant_is_first_at_some_time(self):
        self.assertEqual({volumed_cost.in_order("abc", turn)[0] for turn in range(3)}, set("abc"))

    def test_compared_turn_by_turn(self):
        """A machine that is slower in one turn, for all variants, is not what tags add."""
        values = volumed_cost.Values()
        for slow in (0, 3000, 100):
            values.note("ns", "QEMU alone, CPU", "null-co", "ebb", 1200 + slow)
            values.note("ns", "QEMU alone, CPU", "null-co", "no tags", 1000 + slow)
            values.note("ns", "server CPU", "null-co", "no tags", 4000 + slow * 10)
            values.note("ns", "server CPU", "memory", "no tags", 10000 + slow * 10)
        volumed_cost.note_costs(values)
        rows = values.metrics()
        self.assertEqual(found(rows, "tags add", "null-co")["median"], 200)
        self.assertEqual(found(rows, "tags cost", "null-co")["median"], 4)
        self.assertEqual(found(rows, "tags cost", "memory")["median"], 1.818)
        held = {b["text"].split("disk ")[1]: b["ok"] for b in volumed_cost.bounds_of(rows)}
        self.assertEqual(held, {"null-co, %": False, "memory, %": True})


class Shares(unittest.TestCase):
    def window(self, last):
        tenants = volumed_share.Tenants(metrics.BASE, Daemon([{n: (0, 0) for n in last}, last]))
        tenants.loads = dict.fromkeys(last, [])
        seconds, volumed_share.WINDOW_S = volumed_share.WINDOW_S, 0.001
        try:
            return tenants.window()
        finally:
            volumed_share.WINDOW_S = seconds

    def test_a_promise_is_for_the_time_in_which_requests_wait(self):
        got, wanted_s, _ = self.window({"a": (380, 1000000), "b": (160, 800000)})
        values = metrics.Values("%")
        volumed_share.note_promises(values, "1 s", "ebb", got, wanted_s)
        rows = values.metrics()
        self.assertEqual(found(rows, "promise off, 1 s", "400 IOPS")["median"], 5)
        self.assertEqual(found(rows, "promise off, 1 s", "200 IOPS")["median"], 0)

    def test_who_never_waits_says_nothing(self):
        got, wanted_s, _ = self.window({"a": (10, 100000), "b": (200, 1000000)})
        values = metrics.Values("%")
        volumed_share.note_promises(values, "1 s", "ebb", got, wanted_s)
        self.assertEqual(found(values.metrics(), "promise off, 1 s", "400 IOPS")["failed"], 1)

    def test_maxima_are_what_the_disk_does(self):
        self.assertEqual(sum(volumed_share.MAXIMA.values()), volumed_share.DISK)
        self.assertLess(sum(volumed_share.RESERVED.values()), volumed_share.SLOWER)

    def test_the_promise_is_the_filters_alone(self):
        nodes = {v: volumed_share.volume(v, "a", "/x") for v in volumed_share.VARIANTS}
        self.assertEqual(nodes["ebb"]["reserve-iops"], 400)
        self.assertEqual(nodes["ebb"]["file"], nodes["none"]["file"])
        self.assertNotIn("reserve-iops", nodes["none"])
        self.assertNotIn("weight", nodes["none"])
        self.assertEqual(nodes["throttle"], {"driver": "throttle", "throttle-group": "a",
                                             "file": nodes["none"]})


if __name__ == "__main__":
    unittest.main()
