# SPDX-License-Identifier: GPL-2.0-or-later
"""What benchmarks write: numbers, their shape, and the page."""
import re
import unittest
import xml.etree.ElementTree as ET

import made_up  # noqa: F401: puts scripts/ on the path
from bench import bars, cpu, cpu_vm, metrics, page
from harness.lab import hostmem


def values():
    v = metrics.Values("ms")
    for x in (1.0, 2.0, 9.0):
        v.note("release", "1 GiB", "ebb", x)
        v.note("release", "1 GiB", "other", 100 * x)
    v.note("release.host", "1 GiB", "ebb", 0.5)
    v.fail("release", "2 MiB", "other")
    return v


def summary(**more):
    return {"benchmark": "made-up", "title": "A <made-up> benchmark", "accelerator": "tcg",
            "host": {"spec": "emulated:1x1x1@1"}, "versions": {"ebb": "0"},
            "started_at": "2020-01-01T00:00:00+00:00", "duration_s": 1.0, "notes": ["a & b"],
            "metrics": values().metrics(), "bounds": [], **more}


class Numbers(unittest.TestCase):
    def setUp(self):
        self.of = {(m["name"], m["size"], m["variant"]): m for m in values().metrics()}

    def test_median_p99_and_ratio(self):
        other = self.of["release", "1 GiB", "other"]
        self.assertEqual((other["median"], other["p99"], other["n"]), (200, 900, 3))
        self.assertEqual(other["ratio_to_ebb"], 100)
        self.assertEqual(self.of["release", "1 GiB", "ebb"]["ratio_to_ebb"], 1)

    def test_p99_is_the_nearest_rank(self):
        self.assertEqual(metrics.p99(list(range(1, 201))), 198)
        self.assertEqual(metrics.p99([5]), 5)
        self.assertIsNone(metrics.p99([]))

    def test_failures_are_counted_and_have_no_value(self):
        m = self.of["release", "2 MiB", "other"]
        self.assertEqual((m["n"], m["failed"], m["median"], m["ratio_to_ebb"]),
                         (0, 1, None, None))

    def test_no_ratio_without_a_base(self):
        v = metrics.Values()
        v.note("x", "s", "other", 1)
        self.assertIsNone(v.metrics()[0]["ratio_to_ebb"])


class Bounds(unittest.TestCase):
    def test_held_broken_and_not_measured(self):
        rows = values().metrics()
        for of, field, words, ok in (
                (("release", "1 GiB", "ebb"), "median", "<= 2", True),
                (("release", "1 GiB", "ebb"), "median", "<= 1.9", False),
                (("release", "1 GiB", "other"), "ratio_to_ebb", ">= 100", True),
                (("release", "1 GiB", "other"), "ratio_to_ebb", ">= 101", False),
                (("release", "2 MiB", "other"), "median", "<= 9", False),
                (("nothing", "1 GiB", "ebb"), "median", "<= 9", False)):
            b = metrics.bound(rows, of, field, words, "it")
            self.assertEqual(b["ok"], ok, (of, words))
            self.assertIn("holds" if ok else "DOES NOT HOLD", metrics.verdicts([b])[0])

    def test_are_in_the_page(self):
        text = page.render(summary(bounds=[{"text": "it <it>", "value": None, "bound": "<= 9",
                                            "ok": False}]))
        for words in ("it &lt;it&gt;", "does not hold", "not measured"):
            self.assertIn(words, text)


class Shape(unittest.TestCase):
    def test_good(self):
        self.assertEqual(metrics.problems(summary()), [])

    def test_each_field_is_needed(self):
        for name in metrics.SUMMARY:
            s = summary()
            del s[name]
            self.assertTrue(any(name in p for p in metrics.problems(s)), name)
        for name in metrics.FIELDS:
            s = summary()
            del s["metrics"][1][name]
            self.assertTrue(any(f"metrics[1].{name}" in p for p in metrics.problems(s)), name)

    def test_what_contradicts_itself(self):
        for change, word in (({"n": 0}, "n is 0"), ({"median": None}, "n is 3"),
                             ({"ratio_to_ebb": 2.0}, "against itself"),
                             ({"variant": "other"}, "twice"), ({"unit": 3}, "unit")):
            s = summary()
            s["metrics"][0].update(change)
            self.assertTrue(any(word in p for p in metrics.problems(s)), change)
        self.assertEqual(metrics.problems(summary(metrics=[])), ["metrics is empty"])


class Page(unittest.TestCase):
    def setUp(self):
        self.text = page.render(summary())

    def test_needs_no_network(self):
        text = self.text.replace('xmlns="http://www.w3.org/2000/svg"', "")
        self.assertIsNone(re.search(r"https?://|<script|<link|<img|@import|url\(", text))

    def test_escapes_and_says_all_numbers(self):
        for words in ("A &lt;made-up&gt; benchmark", "a &amp; b", "release.host", "900 ms",
                      "1 failed", "100 x ebb"):
            self.assertIn(words, self.text)

    def test_a_bar_for_each_median(self):
        root = ET.fromstring(re.search(r"<svg.*?</svg>", self.text, re.S).group(0))
        rects = [e for e in root.iter() if e.tag.endswith("rect")]
        # Two variants in the legend, and two that have a value in the panel.
        self.assertEqual(len(rects), 4)
        ebb, other = (float(r.get("width")) for r in rects[2:])
        self.assertGreater(other, ebb)

    def test_scale_is_logarithmic(self):
        rows = [("p", [("g", [("a", 1.0, None, ""), ("b", 10.0, None, ""),
                              ("c", 100.0, None, "")])])]
        root = ET.fromstring(bars.draw(rows, "abc", "ms"))
        a, b, c = (float(e.get("width")) for e in root.iter()
                   if e.tag.endswith("rect") and e.get("height") == str(bars.BAR - 2))
        self.assertAlmostEqual(b - a, c - b, delta=1.1)


class HostMemory(unittest.TestCase):
    # Name, size of a page, offset, used, total, address, access.
    BLOCKS = "".join(f"{name:>17}    4 KiB  {0x20100000:#018x} {used:#018x} {total:#018x} "
                     f"{address:#018x}  rw\n" for name, used, total, address in (
                         ("memua-ebb-pool0", 0x200000, 0x400000, 0x7f0000200000),
                         ("pc.ram", 0x20000000, 0x20000000, 0x7f2ce3e00000)))
    SMAPS = """7f0000000000-7f0000200000 rw-p 00000000 00:00 0
Rss:                1024 kB
7f0000200000-7f0000400000 rw-p 00000000 00:00 0
Size:               2048 kB
Rss:                2048 kB
AnonHugePages:      2048 kB
7f0000400000-7f0000600000 rw-p 00000000 00:00 0
Rss:                   8 kB
7f0000600000-7f0000601000 rw-p 00000000 00:00 0                  [heap]
Rss:                   4 kB
"""

    def test_addresses_come_from_qemu(self):
        blocks = hostmem.ram_blocks(self.BLOCKS)
        self.assertEqual(blocks["memua-ebb-pool0"], (0x7f0000200000, 0x7f0000600000))
        self.assertEqual(set(blocks), {"memua-ebb-pool0", "pc.ram"})

    def test_counts_what_lies_inside_also_of_split_mappings(self):
        span = hostmem.ram_blocks(self.BLOCKS)["memua-ebb-pool0"]
        self.assertEqual(hostmem.rss_bytes(self.SMAPS.splitlines(), [span]), 2056 * 1024)
        self.assertEqual(hostmem.rss_bytes(self.SMAPS.splitlines(), []), 0)

    def test_no_pool_is_said(self):
        with self.assertRaises(ValueError):
            hostmem.PoolMeter(1, self.BLOCKS.replace("ebb-pool0", "other"))


class Cpu(unittest.TestCase):
    def bounds(self, lend=4.0, late=(1.0, 2.0, 4.9), lived=3, park=10.0, stock=40.0):
        v = metrics.Values("ms")
        v.note("hand-over", cpu.SIZE, cpu.TIERS["lend"], lend)
        for ms in late:
            v.note("deadline to usable", cpu.SIZE, cpu.FORCE, ms)
        v.note("release", cpu.SIZE, cpu.TIERS["park"], park)
        v.note("release", cpu.SIZE, cpu.STOCK, stock)
        return [b["ok"] for b in cpu.bounds(v.metrics(), lived, 3, v)]

    def test_bounds_hold(self):
        self.assertEqual(self.bounds(), [True] * 4)

    def test_each_bound_can_fail(self):
        self.assertEqual(self.bounds(lend=5.1), [False, True, True, True])
        self.assertEqual(self.bounds(late=(1.0, 2.0, 5.1)), [True, False, True, True])
        # A trial that gave no value was not in time.
        self.assertEqual(self.bounds(late=(1.0, 2.0)), [True, False, True, True])
        self.assertEqual(self.bounds(lived=2), [True, True, False, True])
        self.assertEqual(self.bounds(stock=29.0), [True, True, True, False])

    def test_moments_of_the_guest_are_turned_into_the_hosts(self):
        vm = cpu_vm.CpuVm.__new__(cpu_vm.CpuVm)
        vm.offset_s = 100.0
        told = vm.host_times({"event": "took", "told_ns": 2 * 10 ** 9, "host_ns": 5000})
        self.assertEqual(told, {"event": "took", "told_ns": 102.0, "host_ns": 5000})


if __name__ == "__main__":
    unittest.main()
