# SPDX-License-Identifier: GPL-2.0-or-later
"""The verdict of `scale` on made-up runs: good ones pass, bad ones fail where they should."""
import unittest

import made_up
from judged import failing, judge


class Scale(unittest.TestCase):
    def test_proportional_host_passes(self):
        summary = judge(*made_up.scale())
        self.assertEqual(failing(summary), set())
        self.assertAlmostEqual(summary["tps_per_cpu"], made_up.PER_CPU, places=3)
        self.assertEqual(len(summary["plateaus"]), 15)
        self.assertEqual(summary["cpu_add_ms"]["n"], 8)
        self.assertEqual(summary["cpu_remove_ms"]["n"], 7)

    def test_small_errors_pass(self):
        run, host = made_up.scale(
            lambda cpus, way: 1000 * cpus * (1.04 if cpus % 2 else 0.96))
        self.assertEqual(judge(run, host)["verdict"], "pass")

    def test_wrong_plateau_fails(self):
        run, host = made_up.scale(lambda cpus, way: 1000 * (cpus if cpus != 5 else 4))
        self.assertEqual(failing(judge(run, host)), {"plateau_error_pct"})

    def test_saturation_fails(self):
        self.assertIn("plateau_error_pct",
                      failing(judge(*made_up.scale(lambda cpus, way: 1000 * min(cpus, 5)))))

    def test_way_down_unlike_way_up_fails(self):
        run, host = made_up.scale(
            lambda cpus, way: 1000 * cpus * (1.0 if way == "up" else 0.88))
        self.assertIn("symmetry_pct", failing(judge(run, host)))

    def test_part_of_the_host_fails(self):
        bad = failing(judge(*made_up.scale(top=6)))
        self.assertEqual(bad, {"most_cpus_held", "plateaus_up", "plateaus_down", "symmetry_pct"})

    def test_static_allocation_fails(self):
        run, host = made_up.run("scale", ["vm1"]), made_up.Host()
        host.set("vm1", 1)
        host.run(60)
        bad = failing(judge(run, host))
        self.assertLessEqual({"most_cpus_held", "plateaus_up", "plateaus_down",
                              "plateau_error_pct", "symmetry_pct", "cpu_removes_timed"}, bad)

    def test_slow_machine_is_not_a_slow_plateau(self):
        def throttled(h, cpus, way):
            h.speed = 80.0 if (cpus, way) == (5, "up") else 100.0
            return made_up.PER_CPU * cpus * h.speed / 100
        self.assertEqual(failing(judge(*made_up.scale(machine=throttled))), set())
        run, host = made_up.scale(machine=throttled)
        for s in host.samples:
            s.host_speed = 100.0
        self.assertIn("plateau_error_pct", failing(judge(run, host)))

    def test_unknown_speed_of_the_machine_fails(self):
        run, host = made_up.scale()
        for s in host.samples:
            s.host_speed = None
        self.assertIn("plateau_error_pct", failing(judge(run, host)))

    def test_plateau_without_reports_fails(self):
        run, host = made_up.scale()
        for s in host.samples:
            if s.cpus_held == 4:
                s.committed = None
        bad = failing(judge(run, host))
        self.assertLessEqual({"plateau_error_pct", "symmetry_pct"}, bad)

    def test_steps_in_passing_are_no_plateaus(self):
        run, host = made_up.scale(dwell_s=5.0)
        run["dwell_s"] = 20.0
        self.assertIn("plateaus_up", failing(judge(run, host)))


if __name__ == "__main__":
    unittest.main()
