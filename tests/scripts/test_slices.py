# SPDX-License-Identifier: GPL-2.0-or-later
"""Verdicts of `scaleout` and `tenants`: computed from the samples, and failing when they should."""
import os
import tempfile
import unittest

import made_up
from scenarios import outcome, report, schema
from scenarios.scaleout import plan as plan_scaleout
from scenarios.schema import Sample
from scenarios.summary import summarize


def sample(who, tps, cpu_came=1.0, **where):
    """cpu_came: of the CPU time that was due, that which came; tps is as it would be with all."""
    return Sample(1.0, who, 2, 2, 0, 0, tps * cpu_came, 1.0, 10, 90, 50, workers=2,
                  committed=int(tps), aborted=0, failed=0, cpu_ms=600 * cpu_came, cpu_due_ms=600,
                  **where)


def scaleout(first=8.0, memory=1.3, numa_nodes=1):
    """first: what one remote operation costs between nodes; memory: in one engine, any number."""
    samples = []
    for turn in range(3):
        noise = 1 + 0.02 * (turn - 1)
        for r in range(11):
            for node in ("node1", "node2"):
                samples.append(sample(node, 1000 * noise / (first if r else 1), variant="2pc",
                                      turn=turn, remote_ops=r))
            samples.append(sample("one", 1900 * noise / (memory if r else 1), variant="memory",
                                  turn=turn, remote_ops=r))
    run = made_up.run("scaleout", ["node1", "node2", "one"], numa_nodes=numa_nodes)
    run.update(accelerator="none", host=dict(run["host"], spec="auto", emulated=False))
    return run, samples


def tenants(factor=1.0, worst_turn=1.0, cpu_came=1.0):
    """factor: throughput of the VMs over that of the engine; worst_turn: of one turn besides;
    cpu_came: of the CPU time that was due to the VMs, that which came."""
    samples = []
    for n in (1, 2, 3, 4):
        for turn in range(3):
            samples.append(sample("engine", 4000, variant="engine", turn=turn, tenants=n))
            for vm in range(n):
                tps = 4000 * factor / n * (worst_turn if turn == 1 else 1)
                samples.append(sample(f"vm{vm}", tps, cpu_came, variant="vms", turn=turn,
                                      tenants=n))
    return made_up.run("tenants", ["engine", "vm0", "vm1", "vm2", "vm3"]), samples


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
        self.assertIn("not measured", report.render(run, [], [], summary))

    def test_report_says_what_stands_in_for_remote_memory(self):
        for numa_nodes, words in ((1, "stands in for remote memory"), (2, "another NUMA node")):
            run, samples = scaleout(numa_nodes=numa_nodes)
            self.assertIn(words, report.render(run, samples, [], summarize(run, samples, [])))

    def test_lists_of_cpus(self):
        self.assertEqual(plan_scaleout.parse_cpus("0-3,8\n"), {0, 1, 2, 3, 8})
        self.assertEqual(plan_scaleout.parse_cpus("\n"), set())


class Tenants(unittest.TestCase):
    def test_equal_throughput_passes(self):
        for factor in (0.96, 1.0, 1.04):
            self.assertEqual(failed(*tenants(factor)), [])

    def test_a_difference_fails_whichever_way(self):
        names = [f"tenants_{n}_difference_pct" for n in (1, 2, 3, 4)]
        for factor in (0.6, 0.93, 1.07):
            self.assertEqual(failed(*tenants(factor)), names)

    def test_one_disturbed_turn_does_not_decide(self):
        self.assertEqual(failed(*tenants(worst_turn=0.5)), [])

    def test_a_slow_machine_is_no_slow_set_up(self):
        run, samples = tenants()
        for s in samples:
            s.tps *= 1 - 0.3 * s.turn
        self.assertEqual(failed(run, samples), [])

    def test_a_slice_of_unknown_cpu_time_does_not_count(self):
        run, samples = tenants()
        for s in samples:
            if s.tenants == 2 and s.variant == "vms" and s.vm == "vm0":
                s.cpu_ms = None
        self.assertEqual(failed(run, samples), ["tenants_2_difference_pct", "cpu_missing_pct"])

    def test_a_number_of_tenants_that_was_not_run_fails(self):
        run, samples = tenants()
        self.assertEqual(failed(run, [s for s in samples if s.tenants != 3]),
                         ["tenants_3_difference_pct"])


class Files(unittest.TestCase):
    def test_samples_survive_and_the_verdict_is_the_same(self):
        for run, samples in (scaleout(), tenants()):
            with tempfile.TemporaryDirectory() as folder:
                schema.write_samples(os.path.join(folder, schema.SAMPLES), samples)
                schema.write_history(os.path.join(folder, schema.HISTORY), [])
                schema.write_json(os.path.join(folder, schema.RUN), run)
                summary = outcome.conclude(folder)
                self.assertEqual(summary["verdict"], "pass")
                self.assertEqual(len(outcome.words(folder, summary)), 3)
                with open(os.path.join(folder, schema.REPORT), encoding="utf-8") as f:
                    self.assertIn("throughput [1000 transactions/s]", f.read())


if __name__ == "__main__":
    unittest.main()
