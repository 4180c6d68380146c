# SPDX-License-Identifier: GPL-2.0-or-later
"""The verdict of `reserve`: computed from counters, and failing when it should."""
import contextlib
import io
import unittest

import made_up_reserve
from harness.judge import promises
from harness.judge.promises import Look
from judged import failing, value
from made_up_reserve import greedy, meet, neighbours, overbooked
from scenarios import demo, outcome
from scenarios.reserve import plan, play


def judge(**parts):
    return outcome.summarize(made_up_reserve.run(**parts), [], [])


class Meet(unittest.TestCase):
    def test_kept_promises_pass(self):
        summary = judge(meet=meet())
        self.assertEqual(failing(summary), set())
        self.assertEqual([h["promised"] for h in summary["meet"]], [300, 100, 100, 300])
        self.assertLess(value(summary, "meet_in_force_ms"), 50)

    def test_too_few_or_too_many_fail(self):
        for got in (0.96, 1.04):
            self.assertIn("meet_mean_off_pct", failing(judge(meet=meet(got=got))))

    def test_a_fair_disk_fails(self):
        found = failing(judge(meet=meet(high=200, low=200) | {"high": 300, "low": 100}))
        self.assertEqual(found, {"meet_mean_off_pct", "meet_intervals_pct", "meet_in_force_ms"})

    def test_a_slow_change_fails(self):
        self.assertIn("meet_in_force_ms", failing(judge(meet=meet(delay_s=0.2))))

    def test_too_little_work_is_nobodys_fault(self):
        m = meet()
        for row in m["looks"]["vm1"]:
            late = row[0] - 4.0
            # A second with a third of the promise, in which requests waited for a third.
            if late >= 0:
                row[1] -= int(min(late, 1.0) * 200)
                row[3] -= min(late, 1.0) * 2 / 3
        self.assertEqual(failing(judge(meet=m)), set())
        for row in m["looks"]["vm1"]:
            row[3] = 0.0
        self.assertIn("meet_contended_pct", failing(judge(meet=m)))

    def test_seconds_below_the_promise_fail(self):
        m = meet()
        # Nothing for one second and a half, then what was missing: the mean is the same.
        for row in m["looks"]["vm1"]:
            if 2.0 <= row[0] < 8.0 and row[0] % 2 < 1.5:
                row[1] = 600 * int(row[0] / 2)
        self.assertEqual(failing(judge(meet=m)), {"meet_intervals_pct"})

    def test_a_run_that_was_not_whole_fails(self):
        summary = judge(meet={"high": 300, "low": 100, "half_s": 10.0})
        self.assertEqual(len(failing(summary)), 4)
        self.assertIn("not measured", outcome.render(
            made_up_reserve.run(meet={"disk_iops": 404, "high": 300, "low": 100, "half_s": 1.0}),
            [], [], summary))


class Greedy(unittest.TestCase):
    def test_isolation_passes(self):
        summary = judge(greedy=greedy())
        self.assertEqual(failing(summary), set())
        self.assertEqual([row["greedy"] for row in summary["greedy"]
                          if row["mode"] == plan.NONE], [0, 1, 2, 3])

    def test_lower_throughput_fails(self):
        self.assertEqual(failing(judge(greedy=greedy(beside=890.0))), {"greedy_tps_pct"})

    def test_a_reservation_that_is_worth_nothing_fails(self):
        self.assertEqual(failing(judge(greedy=greedy(max_only=800.0, none=760.0))),
                         {"greedy_max_only_tps_pct", "greedy_none_tps_pct"})

    def test_ablations_fail(self):
        for mode in (plan.MAX_ONLY, plan.NONE):
            self.assertEqual(failing(judge(mode=mode, greedy=greedy(mode, 500.0, cpu=0.25))),
                             {"greedy_tps_pct", "greedy_cpu_pct", "greedy_relative_io_pct",
                              "greedy_memory_violations"})

    def test_missing_phases_fail(self):
        g = greedy()
        g["phases"] = g["phases"][:7]
        self.assertEqual(failing(judge(greedy=g)), {
            "greedy_tps_pct", "greedy_max_only_tps_pct", "greedy_none_tps_pct"})
        del g["phases"]
        self.assertEqual(len(failing(judge(greedy=g))), 5)

    def test_too_little_cpu_time_fails(self):
        self.assertEqual(failing(judge(greedy=greedy(cpu=0.485))), {"greedy_cpu_pct"})

    def test_other_programs(self):
        summary = judge(greedy=greedy(came=0.9))
        self.assertEqual(failing(summary), set())
        self.assertEqual(value(summary, "cpu_missing_pct"), 10.0)
        self.assertEqual(judge(greedy=greedy(beside=800.0, came=0.7))["verdict"], "not judged")

    def test_more_reads_than_promised_fail(self):
        self.assertEqual(failing(judge(greedy=greedy(reads=16))), set())
        self.assertEqual(failing(judge(greedy=greedy(reads=1020, baseline=1000))), set())
        for reads, baseline in ((17, 0), (1021, 1000)):
            self.assertEqual(failing(judge(greedy=greedy(reads=reads, baseline=baseline))),
                             {"greedy_relative_io_pct"})
        self.assertEqual(failing(judge(greedy=greedy(violations=1))),
                         {"greedy_memory_violations"})

    def test_memory_that_was_not_metered_fails(self):
        g = greedy()
        g["ledger"][0]["num_intervals"] = 0
        self.assertEqual(failing(judge(greedy=g)),
                         {"greedy_relative_io_pct", "greedy_memory_violations"})


class Neighbours(unittest.TestCase):
    def test_isolation_passes(self):
        summary = judge(neighbours=neighbours())
        self.assertEqual(failing(summary), set())
        self.assertEqual(value(summary, "neighbours_cpu_pct"), 50.0)

    def test_too_little_cpu_time_fails(self):
        self.assertEqual(failing(judge(neighbours=neighbours(cpu=0.485))), {"neighbours_cpu_pct"})

    def test_a_long_p99_of_one_type_fails(self):
        n = neighbours()
        n["table"][0]["classes"]["payment"]["p99_us"] = 5400.0
        self.assertEqual(failing(judge(neighbours=n)), {"neighbours_p99_pct"})

    def test_a_type_that_is_missing_fails(self):
        n = neighbours()
        del n["table"][1]["classes"]["delivery"]
        self.assertEqual(failing(judge(neighbours=n)), {
            "neighbours_p99_pct", "neighbours_measured", "neighbours_served_pct"})

    def test_a_p99_of_few_transactions_fails(self):
        for column in range(2):
            n = neighbours()
            n["table"][column]["classes"]["delivery"]["measured"] = 199
            self.assertEqual(failing(judge(neighbours=n)), {"neighbours_measured"})

    def test_more_than_it_can_serve_fails(self):
        for column in range(2):
            n = neighbours()
            n["table"][column]["committed"] = 4400
            self.assertEqual(failing(judge(neighbours=n)), {"neighbours_served_pct"})

    def test_an_engine_without_a_final_line_fails(self):
        n = neighbours()
        n["table"][1].update(committed=None, classes={})
        self.assertIn("neighbours_p99_pct", failing(judge(neighbours=n)))

    def test_other_programs_make_it_not_judged(self):
        summary = judge(neighbours=neighbours(p99_us=9000.0, came=0.7))
        self.assertEqual(summary["verdict"], "not judged")

    def test_a_run_that_was_not_whole_fails(self):
        n = neighbours()
        del n["table"][1]
        self.assertEqual(len(failing(judge(neighbours=n))), 3)
        del n["table"], n["flood"]
        self.assertEqual(len(failing(judge(neighbours=n))), 5)

    def test_lost_updates_fail(self):
        run = made_up_reserve.run(neighbours=neighbours(), meet=meet())
        run["results"]["t1"]["lost_updates"] = 1
        run["results"]["vm1"]["lost_updates"] = None
        self.assertEqual(failing(outcome.summarize(run, [], [])), {"lost_updates"})


class Overbooked(unittest.TestCase):
    def test_a_meter_that_counts_right_passes(self):
        summary = judge(overbooked=overbooked())
        self.assertEqual(failing(summary), set())
        self.assertGreater(summary["overbooked"]["tenant1"]["idle_intervals"], 10)

    def test_a_meter_that_counts_wrong_fails(self):
        for metered in (0.0, 0.95, 1.05):
            self.assertIn("overbooked_meter_off_pct",
                          failing(judge(overbooked=overbooked(metered))))

    def test_violations_in_idle_time_fail(self):
        self.assertIn("overbooked_idle_violated",
                      failing(judge(overbooked=overbooked(idle_violated=1.0))))

    def test_nothing_at_stake_fails(self):
        o = overbooked()
        o["iops"] = 50
        self.assertIn("overbooked_violated", failing(judge(overbooked=o)))


class Arithmetic(unittest.TestCase):
    def test_busy_time_is_that_of_the_union(self):
        spans = [(1.0, 2.0), (1.5, 3.0), (5.0, 6.0)]
        self.assertAlmostEqual(promises.busy_in(spans, 0.0, 10.0), 3.0)
        self.assertAlmostEqual(promises.busy_in(spans, 2.5, 5.5), 1.0)
        self.assertEqual(promises.busy_in(spans, 3.0, 5.0), 0.0)

    def test_reckoning_counts_what_a_meter_would(self):
        trace = [(0.1, 0.3), (0.2, 0.6), (1.5, 1.7)]
        looks = promises.reckon(trace, [0.0, 0.5, 1.0, 2.0])
        self.assertEqual([look.issued for look in looks], [0, 1, 2, 3])
        for look, busy in zip(looks, (0.0, 0.4, 0.5, 0.7)):
            self.assertAlmostEqual(look.busy_s, busy)

    def test_intervals_end_with_looks(self):
        looks = [Look(t / 10, t, t / 10) for t in range(0, 31, 3)]
        found = promises.intervals(looks)
        self.assertEqual([round(i.grown.t_s, 1) for i in found], [1.2, 1.2])
        self.assertAlmostEqual(found[0].rate, 10.0)
        self.assertEqual(promises.intervals([]), [])

    def test_a_promise_is_for_the_time_in_which_requests_waited(self):
        looks = [Look(0.0, 0, 0.0), Look(1.0, 45, 1.0, 0.5), Look(2.0, 50, 2.0, 0.6)]
        first, second = promises.intervals(looks)
        self.assertAlmostEqual(first.kept(100), 0.9)
        self.assertAlmostEqual(first.waiting, 0.5)
        self.assertIsNone(second.kept(100))     # too little was due to say


class Plan(unittest.TestCase):
    def test_arguments(self):
        for words, mode, parts in (
                ([], plan.RESERVED, list(plan.PARTS.values())),
                (["--part", "4", "--ablate"], plan.NONE, [plan.OVERBOOKED]),
                (["--ablate", "--max-only"], plan.MAX_ONLY, list(plan.PARTS.values()))):
            a = demo.arguments(["reserve", *words])
            told = plan.of(a).more["reserve"]
            self.assertEqual((told["mode"], told["parts"]), (mode, parts))
        self.assertTrue(demo.arguments(["reserve", "--part", "4"]).out.endswith("reserve-part4"))
        for words in (["--max-only"], ["--part", "7"]):
            with self.assertRaises(SystemExit), contextlib.redirect_stderr(io.StringIO()):
                demo.arguments(["reserve", *words])

    def test_promises(self):
        self.assertEqual(plan.promise(plan.RESERVED, 100, 300)["reserve_iops"], 100)
        self.assertEqual(plan.promise(plan.MAX_ONLY, 100, 300),
                         {"reserve_iops": None, "max_iops": 300})
        self.assertEqual(set(plan.promise(plan.NONE, 100, 300).values()), {None})
        self.assertLessEqual(plan.HIGH_IOPS + plan.LOW_IOPS, plan.MEET_DISK_IOPS)
        self.assertGreaterEqual(plan.TENANTS * plan.TENANT_IOPS, 1.9 * plan.DISK_IOPS)

    def test_half_of_the_time_is_work(self):
        spans = play.work_spans(10.0, 40.0, 5.0)
        self.assertEqual(spans[0], (10.0, 15.0))
        self.assertAlmostEqual(sum(end - begin for begin, end in spans), 20.0)


class Report(unittest.TestCase):
    def test_both_ablations_are_named(self):
        for mode in (plan.MAX_ONLY, plan.NONE):
            run = made_up_reserve.run(mode, meet=meet(got=0.6), overbooked=overbooked(0.0),
                                      greedy=greedy(mode, 500.0),
                                      neighbours=neighbours(0.04, 16000.0, mode))
            summary = outcome.summarize(run, [], [])
            self.assertEqual(summary["verdict"], "fail")
            self.assertIn(mode, "\n".join(outcome.words("out", summary)))
            text = outcome.render(run, [], [], summary)
            for part in ("Part 1 (figure 4)", "Part 2 (figure 5)", "Part 3 (table 1)",
                         "Part 4 (figures 6 and 7)"):
                self.assertIn(part, text)

    def test_a_run_that_passed_says_so(self):
        run = made_up_reserve.run(meet=meet(), greedy=greedy(), neighbours=neighbours(),
                                  overbooked=overbooked())
        summary = outcome.summarize(run, [], [])
        self.assertEqual(summary["verdict"], "pass")
        self.assertEqual(len(outcome.words("out", summary)), 5)
        self.assertNotIn("not measured", outcome.render(run, [], [], summary))


if __name__ == "__main__":
    unittest.main()
