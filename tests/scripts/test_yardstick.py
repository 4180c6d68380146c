# SPDX-License-Identifier: GPL-2.0-or-later
"""The VM that shows how fast the machine is: what it says, and that verdicts go by it."""
import re
import unittest
from unittest import mock

import made_up
from harness.judge import yardstick
from harness.measure import yardstick_vm
from scenarios.contention import plan as contention_plan
from scenarios.isolate import plan as isolate_plan
from scenarios.outcome import summarize
from scenarios.scale import plan as scale_plan


def failing(run, host):
    samples, events = yardstick.apply(host.samples, host.events)
    return {c["name"] for c in summarize(run, samples, events)["checks"] if not c["ok"]}


def scale(slow=1.0, yardstick_slow=1.0):
    """slow: the machine's speed while the VM holds five CPUs on its way up, of that otherwise;
    yardstick_slow: what the yardstick says of it."""
    def machine(h, cpus, way):
        at = (cpus, way) == (5, "up")
        h.set(yardstick.NAME, 1, tps=made_up.PER_CPU * (yardstick_slow if at else 1.0))
        return made_up.PER_CPU * cpus * (slow if at else 1.0)
    return made_up.scale(machine=machine)


class Yardstick(unittest.TestCase):
    def test_speed_is_its_work_per_cpu_time(self):
        h = made_up.Host()
        h.set("vm1", 2)
        h.set(yardstick.NAME, 1, tps=1000.0)
        h.run(10)
        h.set(yardstick.NAME, 1, tps=500.0)
        h.run(10)
        samples, events = yardstick.apply(h.samples, h.events)
        self.assertEqual({s.vm for s in samples}, {"vm1"})
        self.assertEqual({e.vm for e in events}, {"vm1"})
        speed = {round(s.t_s, 1): s.host_speed for s in samples}
        self.assertIsNone(speed[0.5])       # nothing is known of the second before the first
        self.assertAlmostEqual(speed[8.0], 1.0 / made_up.SHARE, 1)
        self.assertAlmostEqual(speed[18.0], 0.5 / made_up.SHARE, 1)

    def test_work_counts_in_the_time_in_which_it_was_done(self):
        """A report is seen some time after it was made."""
        h = made_up.Host()
        h.set(yardstick.NAME, 1, tps=1000.0)
        h.run(20)
        for s in h.samples:
            s.report_age_ms = 900
        speed = yardstick.Speed(h.samples)
        self.assertAlmostEqual(speed.over(5.0, 6.0), 1.0 / made_up.SHARE, 1)
        self.assertIsNone(speed.over(18.5, 19.5))
        self.assertIsNone(yardstick.Speed([]).over(1.0, 2.0))

    def test_it_visits_the_cpus_in_turn(self):
        meter, visited = mock.Mock(), []
        meter.threads_of.return_value = [77]
        with mock.patch("os.sched_getaffinity", return_value={4, 2}), \
                mock.patch("os.sched_setaffinity", side_effect=lambda *a: visited.append(a)):
            tour = yardstick_vm.Tour(meter)
            for _ in range(3):
                tour()
        self.assertEqual(visited, [(77, {2}), (77, {4}), (77, {2})])
        meter.threads_of.assert_called_with(yardstick.NAME)

    def test_it_has_as_many_records_as_the_others(self):
        """With a quarter of them it was slowed by half as much again as they were."""
        for module in (scale_plan, contention_plan, isolate_plan):
            made = module.make(False, 1, 1.0, 0.2)
            with self.subTest(module.__name__):
                vms = [made.yardstick, *made.vms]
                self.assertEqual(1, len({vm.memory_mib for vm in vms}))
                self.assertEqual(1, len({re.search(r"--records \d+", vm.options["server"])[0]
                                         for vm in vms}))

    def test_a_slow_machine_is_no_slow_plateau(self):
        self.assertEqual(failing(*scale(0.6, 0.6)), set())
        self.assertIn("plateau_error_pct", failing(*scale(0.6, 1.0)))
        self.assertIn("plateau_error_pct", failing(*scale(1.0, 0.6)))

    def test_without_it_nothing_is_known(self):
        run, host = scale()
        host.samples = [s for s in host.samples if s.vm != yardstick.NAME]
        self.assertIn("plateau_error_pct", failing(run, host))


if __name__ == "__main__":
    unittest.main()
