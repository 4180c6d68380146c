# SPDX-License-Identifier: GPL-2.0-or-later
"""The verdict of `contention` on made-up runs."""
import unittest

import made_up  # noqa: F401: puts scripts/ on the path
import made_up_engine
from judged import failing, judge, value


class Contention(unittest.TestCase):
    def test_a_good_run_passes(self):
        summary = judge(*made_up_engine.contention())
        self.assertEqual(failing(summary), set())
        self.assertAlmostEqual(value(summary, "tps_high_pct"), 110, delta=0.5)
        self.assertAlmostEqual(value(summary, "given_back_s"), 3, delta=0.6)

    def test_an_engine_that_keeps_all_fails(self):
        summary = judge(*made_up_engine.contention(keep_all=True))
        self.assertLessEqual({"cpus_high", "tps_high_pct", "given_back_s"}, failing(summary))

    def test_giving_back_what_pays_fails(self):
        summary = judge(*made_up_engine.contention(few_factor=0.8))
        self.assertEqual(failing(summary), {"tps_high_pct"})

    def test_no_reports_is_not_ok(self):
        run, engine = made_up_engine.contention()
        for s in engine.samples:
            s.engine_t_s = None
        self.assertIn("phases", failing(judge(run, engine)))


if __name__ == "__main__":
    unittest.main()
