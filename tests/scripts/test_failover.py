# SPDX-License-Identifier: GPL-2.0-or-later
"""The verdict of `failover`: computed from what was recorded, and failing when it should."""
import os
import tempfile
import unittest

import made_up  # noqa: F401
from harness.lab.process import SetupError
from harness.lab.slow_disk import SlowDisk, device_of
from judged import value
from made_up_failover import case, run
from scenarios import catalogue, demo, outcome
from scenarios.failover.plan import COLD, WARM


def summary_of(made):
    return outcome.summarize(made, [], [])


def failed(**cases):
    return [c["name"] for c in summary_of(run(**cases))["checks"] if not c["ok"]]


class Verdict(unittest.TestCase):
    def test_a_good_run_passes(self):
        summary = summary_of(run())
        self.assertEqual(summary["verdict"], "pass")
        warm, cold = summary["failovers"]
        self.assertEqual(warm["felt_s"], 1.0)
        self.assertAlmostEqual(cold["back_s"], 29.2, 1)
        self.assertTrue(cold["is_back"])
        self.assertAlmostEqual(warm["steady_ms"], 2.0)
        self.assertAlmostEqual(warm["worst_ms"], 6.0)
        self.assertAlmostEqual(value(summary, "back_share"), 1 / 29.2, 2)

    def test_response_times_within_a_fifth_are_back(self):
        self.assertEqual(summary_of(run(cold=case(COLD, slow=1.19, slow_s=30)))["failovers"][1]
                         ["back_s"], 0.2)

    def test_a_warm_node_that_is_slow_for_long_fails(self):
        self.assertEqual(failed(warm=case(WARM, slow_s=3)), ["back_share"])
        # It never was as before while it was watched.
        self.assertEqual(failed(warm=case(WARM, slow_s=100)), ["back_share"])

    def test_one_slow_second_at_the_end_is_chance(self):
        warm = case(WARM)
        warm["load"][-1]["mean_us"] *= 1.3
        self.assertEqual(failed(warm=warm), [])

    def test_a_cold_node_that_is_soon_back_fails(self):
        self.assertEqual(failed(cold=case(COLD, slow_s=5)), ["back_share"])

    def test_a_cold_node_that_never_was_back_counts_as_long_as_it_was_watched(self):
        summary = summary_of(run(cold=case(COLD, slow_s=1000)))
        self.assertEqual(summary["verdict"], "pass")
        self.assertFalse(summary["failovers"][1]["is_back"])
        self.assertEqual(summary["failovers"][1]["back_s"], 60.0)

    def test_failed_requests_fail(self):
        self.assertEqual(failed(warm=case(WARM, failed=1)), ["warm_failed"])
        self.assertEqual(failed(cold=case(COLD, slow=40.0, slow_s=30, failed=900)), [])

    def test_a_long_pause_fails(self):
        self.assertEqual(failed(warm=case(WARM, pause_ms=201.0)), ["pause_ms"])

    def test_units_that_went_one_by_one_have_no_pause_to_judge(self):
        self.assertEqual(failed(warm=case(WARM, at_once=False)), ["pause_ms"])

    def test_a_slow_lazy_recovery_fails(self):
        self.assertEqual(failed(first_ms=201.0), ["first_answer_ms"])
        self.assertEqual(failed(first_ms=None), ["first_answer_ms"])

    def test_lost_updates_and_unfinished_failovers_fail(self):
        self.assertEqual(failed(cold=case(COLD, slow=40.0, slow_s=30, lost=1)), ["lost_updates"])
        self.assertEqual(failed(warm=case(WARM, is_over=False)), ["gone"])

    def test_without_copies_it_fails(self):
        """As --ablate plays it."""
        names = failed(warm=case(WARM, slow=40.0, slow_s=30, failed=300, how=COLD, end_s=68.0))
        self.assertEqual(names, ["back_share", "pause_ms", "warm_failed"])

    def test_nothing_seen_fails_and_is_reported(self):
        made = run()
        for told in made["failover"]["cases"]:
            told["load"] = []
        summary = summary_of(made)
        self.assertEqual(summary["verdict"], "fail")
        self.assertIn("not measured", outcome.render(made, [], [], summary))

    def test_reports_and_words(self):
        for made in (run(), dict(run(), ablate=True)):
            summary = summary_of(made)
            self.assertIn("Figure 15", outcome.render(made, [], [], summary))
            self.assertTrue(outcome.words("out", summary))


class Plan(unittest.TestCase):
    def cases(self, *options):
        a = demo.arguments(["failover", *options])
        return catalogue.ALL["failover"].plan(a).more["cases"]

    def test_without_the_mechanism_both_are_cold(self):
        self.assertEqual(self.cases(), ((WARM, WARM), (COLD, COLD)))
        self.assertEqual(self.cases("--ablate"), ((WARM, COLD), (COLD, COLD)))


class Disk(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)
        self.folder = self.temporary.name

    def read(self, *names):
        with open(os.path.join(self.folder, *names), encoding="ascii") as f:
            return f.read()

    def test_both_versions_are_told_the_rate(self):
        for version, name, text in ((1, "blkio.throttle.read_bps_device", "8:0 3145728"),
                                    (2, "io.max", "8:0 rbps=3145728")):
            parent = os.path.join(self.folder, f"v{version}")
            os.mkdir(parent)
            v1 = parent if version == 1 else os.path.join(self.folder, "none")
            with SlowDisk("8:0", 3, v1, parent) as disk:
                self.assertEqual(self.read(disk.group, name), text)
                disk.add(77)
                self.assertEqual(self.read(disk.group, "cgroup.procs"), "77")
        self.assertEqual(self.read("v2", "cgroup.subtree_control"), "+io")

    def test_without_control_groups_it_says_so(self):
        nowhere = os.path.join(self.folder, "none", "there")
        with self.assertRaises(SetupError), SlowDisk("8:0", 3, nowhere, nowhere):
            pass

    def test_the_device_of_a_partition_is_its_disk(self):
        number = os.stat(self.folder).st_dev
        name = f"{os.major(number)}:{os.minor(number)}"
        disk = os.path.join(self.folder, "sda")
        os.makedirs(os.path.join(disk, "sda1"))
        blocks = os.path.join(self.folder, "block")
        os.mkdir(blocks)
        for path, text in ((disk, "8:0\n"), (os.path.join(disk, "sda1"), "8:1\n")):
            with open(os.path.join(path, "dev"), "w", encoding="ascii") as f:
                f.write(text)
        with self.assertRaises(SetupError):
            device_of(self.folder, blocks)
        os.symlink(os.path.join(disk, "sda1"), os.path.join(blocks, name))
        self.assertEqual(device_of(self.folder, blocks), "8:1")
        with open(os.path.join(disk, "sda1", "partition"), "w", encoding="ascii"):
            pass
        self.assertEqual(device_of(self.folder, blocks), "8:0")


if __name__ == "__main__":
    unittest.main()
