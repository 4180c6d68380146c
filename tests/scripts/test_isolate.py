# SPDX-License-Identifier: GPL-2.0-or-later
"""The verdict of `isolate` on made-up runs."""
import unittest

import made_up  # noqa: F401: puts scripts/ on the path
import made_up_engine
from judged import failing, judge, value


class Isolate(unittest.TestCase):
    def test_a_good_run_passes(self):
        summary = judge(*made_up_engine.isolate())
        self.assertEqual(failing(summary), set())
        self.assertAlmostEqual(value(summary, "gain_pct"), 130, delta=1)

    def test_shared_sockets_fail(self):
        summary = judge(*made_up_engine.isolate(apart=False))
        self.assertLessEqual({"sockets_shared_apart_pct", "threads_of_vm1", "gain_pct"},
                             failing(summary))

    def test_threads_that_are_worth_nothing_fail(self):
        summary = judge(*made_up_engine.isolate(thread_worth=0.5))
        self.assertEqual(failing(summary), {"gain_pct"})


if __name__ == "__main__":
    unittest.main()
