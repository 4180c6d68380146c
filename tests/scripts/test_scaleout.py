# SPDX-License-Identifier: GPL-2.0-or-later
"""The verdict of `scaleout`: computed from the samples, and failing when it should."""
import unittest

from made_up_slices import scaleout
from scenarios import outcome
from scenarios.outcome import summarize
from scenarios.scaleout import plan as plan_scaleout


def failed(run, samples):
    return [c["name"] for c in summarize(run, samples, [])["checks"] if not c["ok"]]


class Scaleout(unittest.TestCase):
    def test_costs_are_those_of_the_samples(self):
        summary = summarize(*scaleout(), [])
        self.assertEqual(summary["verdict"], "pass")
        self.assertAlmostEqual(summary["one_remote_cost"], 8.0, 2)
        self.assertAlmostEqual(summary["memory_worst_cost"], 1.3, 2)

    def test_cheap_remote_operations_fail(self):
        self.assertIn("one_remote_operation_cost", failed(*scaleout(first=1.2)))

    def test_expensive_memory_fails(self):
        self.assertEqual(failed(*scaleout(memory=4.5)), ["remote_memory_cost_share"])

    def test_a_missing_point_fails(self):
        run, samples = scaleout()
        samples = [s for s in samples if (s.variant, s.remote_ops) != ("memory", 4)]
        self.assertEqual(failed(run, samples), ["remote_memory_cost_share", "points"])

    def test_lost_and_failed_transactions_fail(self):
        run, samples = scaleout()
        run["results"]["one"]["lost_updates"] = 1
        run["results"]["node2"]["failed"] = 2
        self.assertEqual(failed(run, samples), ["failed_transactions", "lost_updates"])

    def test_no_samples_fail_and_are_reported(self):
        run, _ = scaleout()
        summary = summarize(run, [], [])
        self.assertEqual(summary["verdict"], "fail")
        self.assertIn("not measured", outcome.render(run, [], [], summary))

    def test_report_says_what_stands_in_for_remote_memory(self):
        for numa_nodes, words in ((1, "stands in for remote memory"), (2, "another NUMA node")):
            run, samples = scaleout(numa_nodes=numa_nodes)
            self.assertIn(words, outcome.render(run, samples, [], summarize(run, samples, [])))

    def test_lists_of_cpus(self):
        self.assertEqual(plan_scaleout.parse_cpus("0-3,8\n"), {0, 1, 2, 3, 8})
        self.assertEqual(plan_scaleout.parse_cpus("\n"), set())


if __name__ == "__main__":
    unittest.main()
