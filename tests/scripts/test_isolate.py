# SPDX-License-Identifier: GPL-2.0-or-later
"""The verdict of `isolate` on made-up runs."""
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


class Isolate(unittest.TestCase):
    def test_a_good_run_passes(self):
        summary = verdict(*made_up_engine.isolate())
        self.assertEqual(failed(summary), set())
        self.assertAlmostEqual(value(summary, "gain_pct"), 130, delta=1)

    def test_shared_sockets_fail(self):
        summary = verdict(*made_up_engine.isolate(apart=False))
        self.assertLessEqual({"sockets_shared_apart_pct", "threads_of_vm1", "gain_pct"},
                             failed(summary))

    def test_threads_that_are_worth_nothing_fail(self):
        summary = verdict(*made_up_engine.isolate(thread_worth=0.5))
        self.assertEqual(failed(summary), {"gain_pct"})


if __name__ == "__main__":
    unittest.main()
