# SPDX-License-Identifier: GPL-2.0-or-later
"""The verdict of `contention` on made-up runs."""
import unittest

import made_up  # noqa: F401: puts scripts/ on the path
import made_up_engine
from scenarios.outcome import summarize


def verdict(run, engine):
    return summarize(run, engine.samples, engine.events)


def failed(summary):
    return {c["name"] for c in summary["checks"] if not c["ok"]}


def value(summary, name):
    return next(c["value"] for c in summary["checks"] if c["name"] == name)


class Contention(unittest.TestCase):
    def test_a_good_run_passes(self):
        summary = verdict(*made_up_engine.contention())
        self.assertEqual(failed(summary), set())
        self.assertAlmostEqual(value(summary, "tps_high_pct"), 110, delta=0.5)
        self.assertAlmostEqual(value(summary, "given_back_s"), 3, delta=0.6)

    def test_an_engine_that_keeps_all_fails(self):
        summary = verdict(*made_up_engine.contention(keep_all=True))
        self.assertLessEqual({"cpus_high", "tps_high_pct", "given_back_s"}, failed(summary))

    def test_giving_back_what_pays_fails(self):
        summary = verdict(*made_up_engine.contention(few_factor=0.8))
        self.assertEqual(failed(summary), {"tps_high_pct"})

    def test_no_reports_is_not_ok(self):
        run, engine = made_up_engine.contention()
        for s in engine.samples:
            s.engine_t_s = None
        self.assertIn("phases", failed(verdict(run, engine)))


if __name__ == "__main__":
    unittest.main()
