# SPDX-License-Identifier: GPL-2.0-or-later
"""The verdict of `tenants`: computed from the samples, and failing when it should."""
import unittest

from made_up_slices import tenants
from scenarios.outcome import summarize


def failed(run, samples):
    return [c["name"] for c in summarize(run, samples, [])["checks"] if not c["ok"]]


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


if __name__ == "__main__":
    unittest.main()
