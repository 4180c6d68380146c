# SPDX-License-Identifier: GPL-2.0-or-later
"""CPU time that came and CPU time that was due, and verdicts on a machine on which others run."""
import unittest

import made_up
import made_up_engine
from harness.judge import delivery
from harness.judge.delivery import Core, Delivered
from harness.measure import core_meter
from harness.record import schema
from judged import failing, value
from made_up_rebalance import rebalance
from made_up_slices import tenants
from scenarios import demo, outcome
from scenarios.outcome import summarize


def rows(*told):
    """Samples of (t_s, CPU ms, CPU ms due)."""
    return [schema.Sample(t, "vm1", 1, 1, 0, 0, None, None, None, None, cpu_ms=came, cpu_due_ms=due)
            for t, came, due in told]


class Due(unittest.TestCase):
    CORE = Core(0.2, 0.2)

    def test_a_thread_that_is_always_ready_is_due_the_quota(self):
        self.assertAlmostEqual(delivery.due_of(self.CORE, {1: (0.2, 0.8)})[1], 0.2)
        self.assertAlmostEqual(delivery.due_of(self.CORE, {1: (0.1, 0.9)})[1], 0.2)

    def test_a_thread_that_sleeps_is_due_no_more_than_it_asked_for(self):
        # Ready for half of the time; the rest of the quota is not missing, it was not wanted.
        self.assertAlmostEqual(delivery.due_of(self.CORE, {1: (0.1, 0.4)})[1], 0.1)
        self.assertEqual(delivery.due_of(self.CORE, {1: (0.0, 0.0)}), {1: 0.0})
        self.assertEqual(delivery.due_of(self.CORE, {}), {})

    def test_threads_on_one_core_are_due_no_more_than_the_core(self):
        # Eight CPUs by name, one core in fact: all that was due has come, and it is little.
        used = {t: (0.025, 0.975) for t in range(8)}
        self.assertAlmostEqual(sum(delivery.due_of(self.CORE, used).values()), 0.2)

    def test_hyperthreads_have_quotas_of_their_own_within_that_of_the_core(self):
        core = Core(0.26, 0.2)
        both = {1: (0.13, 0.87), 2: (0.13, 0.87)}
        self.assertAlmostEqual(sum(delivery.due_of(core, both).values()), 0.26)
        self.assertAlmostEqual(delivery.due_of(core, {1: (0.2, 0.8), 2: (0.0, 0.0)})[1], 0.2)

    def test_what_a_neighbour_on_the_core_had_is_not_missing(self):
        used = {1: (0.18, 0.82), 2: (0.02, 0.10)}
        due = delivery.due_of(self.CORE, used)
        self.assertAlmostEqual(due[1], 0.18)
        self.assertAlmostEqual(due[2], 0.02)

    def test_vms_add_up_over_cores(self):
        where = {0: {1: "a"}, 1: {2: "a", 3: "b"}}
        used = {0: {1: (0.1, 0.9)}, 1: {2: (0.1, 0.9), 3: (0.1, 0.9)}}
        given = core_meter.by_vm(dict.fromkeys(where, self.CORE), used, where)
        self.assertAlmostEqual(given["a"].cpu_s, 0.2)
        self.assertAlmostEqual(given["a"].due_s, 0.3)
        self.assertAlmostEqual(given["b"].missing, 0.0)


class Given(unittest.TestCase):
    def test_missing_is_a_part_of_what_was_due(self):
        self.assertAlmostEqual(Delivered(0.9, 1.2).missing, 0.25)
        # Quotas are kept period by period, not to the microsecond.
        self.assertEqual(Delivered(1.01, 1.0).missing, 0.0)
        self.assertEqual(Delivered().missing, 0.0)

    def test_work_per_cpu_second_times_cpu_seconds_due(self):
        self.assertAlmostEqual(Delivered(0.5, 1.0).full(700.0), 1400.0)
        self.assertAlmostEqual(Delivered(1.0, 1.0).full(700.0), 700.0)
        self.assertAlmostEqual(Delivered(1.1, 1.0).full(700.0), 700.0)
        self.assertIsNone(Delivered(0.0, 1.0).full(0.0))
        self.assertIsNone(Delivered(0.5, 1.0).full(None))

    def test_time_between_samples(self):
        clock = delivery.Clock(rows((1.0, 100, 100), (2.0, 300, 400), (3.0, 300, 500)))
        given = clock.between(1.5, 3.0)
        self.assertAlmostEqual(given.cpu_s, 0.1)
        self.assertAlmostEqual(given.due_s, 0.25)
        for begin, end in ((0.9, 2.0), (1.0, 3.1)):
            self.assertIsNone(clock.between(begin, end))
        self.assertIsNone(delivery.Clock(rows((1.0, None, None))).between(1.0, 1.0))

    def test_cpu_time_is_that_of_the_moment_it_was_read(self):
        late = rows((1.0, 100, 100), (2.0, 300, 400))
        for s in late:
            s.read_t_s = s.t_s + 0.5
        clock = delivery.Clock(late)
        self.assertIsNone(clock.between(1.0, 2.0))
        self.assertAlmostEqual(clock.between(1.5, 2.5).cpu_s, 0.2)
        self.assertAlmostEqual(delivery.over(late).due_s, 0.3)

    def test_unknown_parts_make_the_whole_unknown(self):
        self.assertEqual(delivery.total([Delivered(1, 2), Delivered(3, 4)]), Delivered(4, 6))
        self.assertIsNone(delivery.total([Delivered(1, 2), None]))
        self.assertIsNone(delivery.total([]))
        self.assertIsNone(delivery.missing_pct(None))

    def test_the_worst_part_decides_whether_to_judge(self):
        self.assertTrue(delivery.check([0.0, 24.0]).ok)
        self.assertFalse(delivery.check([0.0, 26.0]).ok)
        for unknown in ([], [0.0, None]):
            self.assertIsNone(delivery.check(unknown).value)


def scale(missing, cpus=5, way="up"):
    """A run of `scale` in which one plateau lacks CPU time."""
    def machine(host, held, direction):
        host.cpu_came = 1.0 - missing if (held, direction) == (cpus, way) else 1.0
    return made_up.scale(machine=machine)


class OthersRunBeside(unittest.TestCase):
    """Throughput per second has a dent where others ran; work per CPU time has none."""

    def judge(self, run, host):
        return summarize(run, host.samples, host.events)

    def test_scale(self):
        summary = self.judge(*scale(0.2))
        self.assertEqual(failing(summary), set())
        self.assertAlmostEqual(value(summary, "cpu_missing_pct"), 20, delta=0.1)
        self.assertLess(next(p["tps"] for p in summary["plateaus"] if p["cpus"] == 5), 4100)

    def test_contention(self):
        run, engine = made_up_engine.contention(few_cpu=0.8)
        summary = self.judge(run, engine)
        self.assertEqual(failing(summary), set())
        self.assertAlmostEqual(value(summary, "tps_high_pct"), 110, delta=1)

    def test_isolate(self):
        # Less for both tenants where it helps the comparison: it does not.
        for worth, bad in ((0.65, set()), (0.5, {"gain_pct"})):
            run, tenants_of = made_up_engine.isolate(thread_worth=worth, fair_cpu=0.8)
            summary = self.judge(run, tenants_of)
            self.assertEqual(failing(summary), bad)
            self.assertAlmostEqual(value(summary, "gain_pct"), 200 * worth, delta=1)

    def test_tenants(self):
        summary = summarize(*tenants(cpu_came=0.85), [])
        self.assertEqual(failing(summary), set())
        self.assertAlmostEqual(summary["points"][2]["cpu_missing_pct"]["vms"], 15, delta=0.1)
        # With others on their CPUs inside of the VM all CPU time came: that is no excuse.
        self.assertEqual(len(failing(summarize(*tenants(factor=0.5), []))), 4)

    def test_rebalance(self):
        for cpu_came in ({"static": 1.0, "rebalanced": 0.8}, {"static": 0.8, "rebalanced": 1.0}):
            summary = self.judge(*rebalance(cpu_came=cpu_came,
                                            hot_s={"static": 12.0, "rebalanced": 0.0}))
            self.assertEqual(failing(summary), set())
            self.assertAlmostEqual(value(summary, "tps_pct"), 125, delta=1)
            self.assertEqual(summary["modes"]["static"][0]["hot"], 48)

    def test_a_core_that_is_held_and_does_nothing_is_not_missing(self):
        # Its worker never asks: nothing is due, so nothing is made up for.
        run, host = made_up.scale(lambda cpus, way: 1000 * min(cpus, 7))
        self.assertIn("plateau_error_pct", failing(self.judge(run, host)))


class NotJudged(unittest.TestCase):
    def judge(self, missing, **more):
        run, host = scale(missing)
        run.update(more)
        return run, host, summarize(run, host.samples, host.events)

    def test_too_much_missing_is_neither_pass_nor_fail(self):
        run, host, summary = self.judge(0.4)
        self.assertEqual(summary["verdict"], "not judged")
        self.assertEqual(failing(summary), {"cpu_missing_pct"})
        self.assertEqual(schema.summary_problems(summary), [])
        words = "\n".join(outcome.words("out/scale", summary))
        self.assertIn("Verdict: not judged", words)
        self.assertIn("verdict: not judged",
                      outcome.render(run, host.samples, host.events, summary))
        self.assertNotIn(outcome.EXIT[summary["verdict"]],
                         (outcome.EXIT["pass"], outcome.EXIT["fail"], demo.EXIT_USAGE,
                          demo.EXIT_SETUP))

    def test_checks_of_work_do_not_fail_what_is_not_judged(self):
        def machine(host, held, way):
            host.cpu_came = 0.6 if held == 5 else 1.0
            return 2000.0 if held == 3 else None
        run, host = made_up.scale(machine=machine)
        summary = summarize(run, host.samples, host.events)
        self.assertEqual(summary["verdict"], "not judged")
        self.assertIn("plateau_error_pct", failing(summary))

    def test_what_has_nothing_to_do_with_cpu_time_still_fails(self):
        run, host = scale(0.4)
        run["results"]["vm1"]["lost_updates"] = 1
        self.assertEqual(summarize(run, host.samples, host.events)["verdict"], "fail")

    def test_static_allocation_fails_however_busy_the_machine_is(self):
        run, host = made_up.run("scale", ["vm1"], ablate=True), made_up.Host()
        host.cpu_came = 0.4
        host.set("vm1", 1)
        host.run(60)
        self.assertEqual(summarize(run, host.samples, host.events)["verdict"], "fail")

    def test_cpu_time_that_is_not_known_fails(self):
        run, host = made_up.scale()
        for s in host.samples:
            s.cpu_ms = None
        summary = summarize(run, host.samples, host.events)
        self.assertEqual(summary["verdict"], "fail")
        self.assertLessEqual({"cpu_missing_pct", "plateau_error_pct"}, failing(summary))


if __name__ == "__main__":
    unittest.main()
