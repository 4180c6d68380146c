# SPDX-License-Identifier: GPL-2.0-or-later
"""Checks that every scenario shares, and the arithmetic on series of samples."""
import dataclasses
import unittest

import made_up
from harness.judge import checks, series
from judged import failing, judge
from scenarios.scale import verdict as verdict_scale


class Outcome(unittest.TestCase):
    """Holds for every scenario; shown on spot."""

    def judge_with(self, vm, result):
        run, host = made_up.spot()
        run["results"][vm] = result
        return judge(run, host)

    def test_lost_update_fails(self):
        summary = self.judge_with("vm2", {"failed": 0, "lost_updates": 1, "committed": 5})
        self.assertEqual(failing(summary), {"lost_updates"})
        self.assertEqual(summary["lost_updates"], 1)

    def test_failed_transaction_fails(self):
        summary = self.judge_with("vm3", {"failed": 2, "lost_updates": 0, "committed": 5})
        self.assertEqual(failing(summary), {"failed_transactions"})
        self.assertEqual(summary["failed_transactions"], 2)

    def test_engine_without_a_final_line_is_unknown_not_zero(self):
        summary = self.judge_with("vm1", None)
        self.assertEqual(failing(summary), {"failed_transactions", "lost_updates"})
        self.assertIsNone(summary["lost_updates"])

    def test_unverified_engine_is_unknown_not_zero(self):
        summary = self.judge_with("vm1", {"failed": 0, "lost_updates": None, "committed": 5})
        self.assertEqual(failing(summary), {"lost_updates"})

    def test_change_without_history_fails(self):
        run, host = made_up.spot()
        host.events = [e for e in host.events if not (e.vm == "vm1" and e.event == "release")]
        self.assertIn("changes_not_in_history", failing(judge(run, host)))

    def test_change_without_reason_fails(self):
        run, host = made_up.spot()
        host.events[3].reason = " "
        self.assertEqual(failing(judge(run, host)), {"history_without_reason"})

    def test_exchange_without_latency_fails(self):
        run, host = made_up.spot()
        next(e for e in host.events if e.event == "grant").total_ms = None
        self.assertEqual(failing(judge(run, host)), {"cpu_adds_timed"})

    def test_what_was_forced_before_needs_no_latency(self):
        for cpus, bad in ((0, set()), (1, {"cpu_removes_timed"})):
            run, host = made_up.spot(tier="lend")
            given = next(e for e in host.events if e.event in ("lend", "release"))
            host.events.append(dataclasses.replace(given, cpus=cpus, total_ms=None))
            self.assertEqual(failing(judge(run, host)), bad)


class Series(unittest.TestCase):
    def test_percentile_is_nearest_rank(self):
        self.assertEqual(series.percentile([5, 1, 3], 0.5), 3)
        self.assertEqual(series.percentile(list(range(1, 101)), 0.95), 95)
        self.assertEqual(series.percentile([7], 0.95), 7)
        self.assertIsNone(series.percentile([], 0.5))

    def test_fit_weighs_plateaus_alike(self):
        self.assertAlmostEqual(series.fit_rate([(1, 10), (2, 20), (8, 80)]), 10)
        rate = series.fit_rate([(1, 9), (8, 88)])
        self.assertLess(abs(9 / rate - 1), 0.11)
        self.assertLess(abs(88 / (8 * rate) - 1), 0.11)
        self.assertIsNone(series.fit_rate([]))

    def test_gap_counts_the_edges(self):
        self.assertEqual(series.largest_gap_s([3, 4, 5], 0, 6), 3)
        self.assertEqual(series.largest_gap_s([0, 1, 2], 0, 6), 4)
        self.assertIsNone(series.largest_gap_s([9], 0, 6))

    def test_idle_share(self):
        host = made_up.Host()
        host.set("vm1", 2)
        host.run(5)
        host.set("vm1", 6)
        host.run(5.25)
        self.assertAlmostEqual(checks.idle_core_share(host.samples, 8, 0, 10), 0.5)

    def test_plateau_is_measured_in_its_interior(self):
        run, host = made_up.scale()
        found = verdict_scale.plateaus(host.samples, 2.5)
        for s in host.samples:
            if s.t_s < found[0].begin + verdict_scale.SETTLE_SHARE * 5:
                s.committed = 0
        self.assertAlmostEqual(verdict_scale.plateaus(host.samples, 2.5)[0].of.tps, 1000.0)


if __name__ == "__main__":
    unittest.main()
