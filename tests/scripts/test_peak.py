# SPDX-License-Identifier: GPL-2.0-or-later
"""The verdict of `peak` on made-up runs."""
import unittest

import made_up  # noqa: F401: puts scripts/ on the path
import made_up_engine
from harness.judge import engine_series
from judged import failing, judge
from scenarios.peak import verdict as verdict_peak


class Peak(unittest.TestCase):
    def test_good_runs_pass(self):
        for close_up in (False, True):
            summary = judge(*made_up_engine.peak(close_up=close_up))
            self.assertEqual(failing(summary), set(), close_up)
            self.assertEqual(len(summary["peaks"]), 3)

    def test_static_allocation_fails(self):
        for close_up in (False, True):
            summary = judge(*made_up_engine.peak(static=True, close_up=close_up))
            self.assertLessEqual({"lowest_window_pct", "served_pct", "cpus_peak"}, failing(summary))

    def test_late_cpus_fail(self):
        summary = judge(*made_up_engine.peak(late_s=1.5))
        self.assertIn("lowest_window_pct", failing(summary))
        summary = judge(*made_up_engine.peak(late_s=0.1, close_up=True))
        self.assertIn("lowest_window_pct", failing(summary))

    def test_cpus_that_are_kept_fail(self):
        run, engine = made_up_engine.peak()
        for s in engine.samples:
            s.cpus_held = max(s.cpus_held, 8 if s.t_s > 13 else 4)
        self.assertIn("cpus_normal", failing(judge(run, engine)))

    def test_windows_in_which_the_machine_stood_still_are_told_apart(self):
        run, engine = made_up_engine.peak(late_s=0.1, close_up=True)
        summary = judge(run, engine)
        below = summary["windows_below"]
        self.assertGreater(below, 0)
        self.assertEqual(summary["windows_below_paused"], 0)
        for s in engine.samples:
            s.host_pause_ms = 30.0
        summary = judge(run, engine)
        self.assertEqual(summary["windows_below_paused"], below)
        # The bound stays.
        self.assertIn("lowest_window_pct", failing(summary))

    def test_control_sees_stalls_without_exchange(self):
        run, engine = made_up_engine.peak(close_up=True)
        summary = judge(run, engine)
        self.assertGreater(summary["control_windows"], 20)
        self.assertEqual(summary["control_below"], 0)
        told = [s for s in engine.samples if s.engine_t_s is not None and not s.offered_ps]
        for s in told[20:23]:
            s.engine_tps = 0.0
        summary = judge(run, engine)
        self.assertEqual(summary["control_below"], 3)
        self.assertEqual(failing(summary), set())

    def test_windows_hold_all_that_was_reported(self):
        _, engine = made_up_engine.peak()
        told = verdict_peak.traffic(engine_series.reports(engine.samples))
        found = verdict_peak.windows(told, 1.0)
        self.assertAlmostEqual(sum(w.end - w.begin for w in found),
                               told[-1].t_s - told[0].t_s + 0.5, delta=1.0)
        self.assertTrue(all(0.7 < w.end - w.begin < 1.3 for w in found))


if __name__ == "__main__":
    unittest.main()
