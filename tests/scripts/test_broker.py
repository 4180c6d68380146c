# SPDX-License-Identifier: GPL-2.0-or-later
"""`broker` on made-up runs: a good one passes, and each check fails for what it is there for."""
import io
import os
import re
import tempfile
import unittest
import unittest.mock

import made_up  # noqa: F401: puts scripts/ on the path
from harness.draw import histogram
from harness.judge import smooth
from harness.record import schema
from judged import judge
from made_up_broker import COLD, MIB, READS, Run, WARM, broker
from scenarios import demo, outcome
from scenarios.broker import (figure as figure_broker, plan as plan_broker, play as scene_broker,
                              verdict as verdict_broker)


def failing(run, host):
    return {c["name"] for c in judge(run, host)["checks"] if not c["ok"]}


def changed(name, **values):
    return {name: {**getattr(Run(), name), **values}}


class Verdict(unittest.TestCase):
    def test_good_run_passes(self):
        summary = judge(*broker())
        self.assertEqual([c for c in summary["checks"] if not c["ok"]], [])
        self.assertEqual(summary["verdict"], "pass")
        told = summary["rounds"]
        self.assertGreater(told["vom"]["median_tps"], told["balloon"]["median_tps"])
        self.assertAlmostEqual(told["vom"]["restart_tps"], 990, delta=20)
        self.assertAlmostEqual(told["vom"]["both_tps"][COLD], 700, delta=20)
        self.assertAlmostEqual(told["vom"]["both_tps"][WARM], 500, delta=20)
        self.assertAlmostEqual(told["vom"]["cold_held_mib"], 130, delta=1)
        for name in "ramp_reads", "restart_reads":
            self.assertAlmostEqual(told["equal"][name], READS, delta=0.01)

    def test_each_check_can_fail(self):
        for name, changes in (
                ("rounds", {"policies": ["vom", "equal", "proportional"]}),
                ("gain_pct", changed("growth", vom=1.95)),
                ("gain_pct", {"policies": ["vom"]}),
                ("restart_pct", changed("restart_tps", vom=900.0)),
                ("restart_pct", {"policies": ["vom", "equal", "balloon"]}),
                ("cold_held_mib", {"cold_held": 60}),
                ("brokerings", {"gap_s": 1000.0, "ramp_s": 40.0}),
                ("cool_down_s", {"gap_s": 2.0}),
                ("histograms", {"tells": (COLD,)}),
                ("histograms", {"tells": ()}),
                ("histogram_bytes", {"buckets": 800}),
                ("revoked_mib", {"revoked_mib": 4}),
                ("memory_without_reason", {"reason": " "}),
                ("failed_transactions", {"result": {**Run().result, "failed": 1}}),
                ("lost_updates", {"result": {**Run().result, "lost_updates": 2}})):
            with self.subTest(name, **changes):
                self.assertIn(name, failing(*broker(**changes)))

    def test_ablation_fails_by_the_same_checks(self):
        growth = {**Run().growth, "vom": Run().growth["proportional"]}
        run, host = broker(ablate=True, growth=growth, tells=())
        self.assertEqual(run["broker"]["rounds"][0], {"variant": "vom", "policy": "proportional"})
        good, bad = judge(*broker()), judge(run, host)
        self.assertEqual([c["name"] for c in good["checks"]], [c["name"] for c in bad["checks"]])
        self.assertLessEqual({"gain_pct", "histograms"},
                             {c["name"] for c in bad["checks"] if not c["ok"]})

    def test_empty_run_fails_without_breaking(self):
        run, host = broker()
        host.samples, host.events, run["steps"] = [], [], []
        run["broker"]["histograms"] = []
        summary = judge(run, host)
        self.assertEqual(summary["verdict"], "fail")
        self.assertIn("not measured", outcome.render(run, [], [], summary))

    def test_a_hole_in_a_round_fails(self):
        run, host = broker()
        ramp = verdict_broker.moments(run, "equal").ramp
        host.samples = [s for s in host.samples if not ramp + 5 < s.t_s < ramp + 8]
        self.assertIn("sampling_gap_s", failing(run, host))

    def test_one_brokering_has_a_row_for_each_vm(self):
        run, host = broker()
        self.assertEqual(judge(run, host)["brokerings"], dict.fromkeys(plan_broker.POLICIES, 10))


class Smooth(unittest.TestCase):
    def rows(self, rates, step=0.5):
        _, host = broker()
        rows, done = [], 0.0
        for i, tps in enumerate(rates):
            done += tps * step
            s = schema.Sample(**{**host.samples[0].__dict__, "t_s": i * step,
                                 "committed": int(done), "host_speed": None})
            rows.append(s)
        return rows

    def test_average_of_a_steady_rate_is_the_rate(self):
        points = smooth.moving_average(self.rows([100.0] * 40), 4.0)
        self.assertEqual({round(v) for _, v in points}, {100})
        self.assertEqual(points[0][0], 1.0)

    def test_a_step_takes_a_window(self):
        points = dict(smooth.moving_average(self.rows([0.0] * 20 + [100.0] * 20), 4.0))
        self.assertEqual(points[9.5], 0)
        self.assertAlmostEqual(points[11.5], 50, delta=1)
        self.assertAlmostEqual(points[13.5], 100, delta=1)

    def test_speed_of_the_machine_is_evened_out(self):
        rows = self.rows([200.0] * 20)
        for s in rows:
            s.host_speed = 200.0
        self.assertAlmostEqual(smooth.overall(rows, 100.0), 100, delta=1)

    def test_too_few_rows_have_no_throughput(self):
        self.assertIsNone(smooth.overall(self.rows([1.0])))
        self.assertEqual(smooth.moving_average([], 4.0), [])


class Histogram(unittest.TestCase):
    BUCKETS = [[1000, 2048, 0], [0, 1024, 0], [50, 512, 1]]

    def test_bars_rise_and_lie_side_by_side(self):
        self.assertEqual(histogram.bars(self.BUCKETS),
                         [(0.0, 1.0, 0), (1.0, 1.5, 50), (1.5, 3.5, 1000)])

    def test_scale_covers_all_values(self):
        self.assertEqual(histogram.scale([0, 50, 1000]), (1, 3))
        self.assertEqual(histogram.scale([0, 0]), (0, 1))
        self.assertEqual(histogram.scale([100]), (2, 3))

    def test_memory_below_the_cutoff(self):
        self.assertEqual(histogram.below(self.BUCKETS, 1000), 1.5)
        self.assertEqual(histogram.below(self.BUCKETS, 0), 0)

    def test_draws_a_bar_for_each_bucket_and_the_cutoff(self):
        text = histogram.draw([("a <cold> VM", self.BUCKETS, "#123456", 60)])
        self.assertEqual(text.count("<rect"), 3)
        self.assertIn("a &lt;cold&gt; VM", text)
        self.assertIn("cut-off", text)
        self.assertNotIn("cut-off", histogram.draw([("x", self.BUCKETS, "#123456", None)]))

    def test_nothing_to_draw_is_no_error(self):
        self.assertIn("<svg", histogram.draw([("x", [], "#123456", None)]))

    def test_size_on_the_wire(self):
        self.assertEqual(verdict_broker.histogram_bytes({"buckets": [0] * 512}), 8208)


class Page(unittest.TestCase):
    def test_draws_curves_memory_and_histograms(self):
        run, host = broker()
        text = outcome.render(run, host.samples, host.events, judge(run, host))
        for words in ("warm: throughput", "warm: memory [MiB]", "cold: memory [MiB]",
                      "What memory is worth", ">proportional<", ">vom<", "4,816 bytes",
                      "moving average over 8 s", "The rounds", "broker 6 MiB, node 0"):
            self.assertIn(words, text)
        self.assertEqual(figure_broker.curves(run, host.samples).count("<path"), 4 * 4)
        text = text.replace('xmlns="http://www.w3.org/2000/svg"', "")
        self.assertIsNone(re.search(r"https?://|<script|<link|<img|@import|url\(", text))

    def test_ablation_says_what_it_costs(self):
        growth = {**Run().growth, "vom": 1.6}
        run, host = broker(ablate=True, growth=growth, tells=())
        summary = judge(run, host)
        text = outcome.render(run, host.samples, host.events, summary)
        self.assertIn("black-box brokering", text)
        self.assertIn("proportional in place of vom", text)
        self.assertIn("failing is expected", "\n".join(outcome.words("out/broker", summary)))

    def test_closing_words_of_a_good_run(self):
        words = outcome.words("out/broker", judge(*broker()))
        self.assertEqual(len(words), 3)
        self.assertIn("at the cost of a cold one", words[0])


class Files(unittest.TestCase):
    def test_verdict_comes_from_the_files(self):
        run, host = broker()
        with tempfile.TemporaryDirectory() as folder:
            schema.write_json(os.path.join(folder, schema.RUN), run)
            schema.write_samples(os.path.join(folder, schema.SAMPLES), host.samples)
            schema.write_history(os.path.join(folder, schema.HISTORY), host.events)
            self.assertEqual(outcome.conclude(folder)["verdict"], "pass")


class FakeLab:
    def __init__(self, vom):
        self.vom = vom

    def ask(self, *_args):
        return {"histogram": self.vom}


class Scene(unittest.TestCase):
    def test_data_of_both_is_larger_than_the_pool(self):
        p = plan_broker.make(False, 3, 2.0)
        records = int(re.search(r"--records (\d+)", p.vms[0].options["server"]).group(1))
        self.assertGreater(2 * records / 1024, 1.5 * p.more["broker"]["pool_mib"])
        self.assertEqual([vm.pools for vm in p.vms], [[0], [0]])
        self.assertEqual([vm.cells[0].pool_min_mib for vm in p.vms], [18, 18])
        self.assertIn("--seed 3", p.vms[0].options["server"])
        self.assertEqual(p.agent_options["cool_down_s"], "8")
        # Whole seconds, and one at least.
        self.assertEqual(plan_broker.make(False, 3, 0.7).agent_options["cool_down_s"], "3")
        self.assertEqual(plan_broker.make(False, 3, 0.1).agent_options["cool_down_s"], "1")
        self.assertEqual(p.more["broker"]["window_s"], 32)

    def test_the_short_load_is_the_same_story_in_15_minutes(self):
        usual, short = (plan_broker.make(False, 1, 1.0, load=name)
                        for name in ("ycsb", "ycsb-short"))
        part = []
        for p in (usual, short):
            records = int(re.search(r"--records (\d+)", p.vms[0].options["server"]).group(1))
            b = p.more["broker"]
            part.append((p.vms[0].read_iops * b["minute_s"] / records, b["pool_mib"] / records,
                         b["cool_down_s"] / b["minute_s"], b["ramp_s"] / b["window_s"]))
        self.assertEqual(*part)
        told = sum(b[name] for name in ("idle_s", "ramp_s", "restart_s", "both_s"))
        self.assertLess(4 * (told + b["window_s"] / 2), 12 * 60)

    def test_minima_and_threshold_are_blocks_of_the_pool(self):
        for load in plan_broker.LOADS.values():
            self.assertEqual(load.min_mib % 2, 0)
            self.assertEqual(load.pool_mib % 2, 0)
            self.assertEqual(load.max_mib % 2, 0)

    def test_nothing_is_brokered_before_the_ramp_up(self):
        for load in plan_broker.LOADS.values():
            self.assertLessEqual(100 * (load.max_mib + load.min_mib),
                                 plan_broker.THRESHOLD_PCT * load.pool_mib)

    def test_ablation_differs_only_in_the_first_round(self):
        with_it, without = (plan_broker.make(ablate, 1, 1.0) for ablate in (False, True))
        self.assertEqual(with_it.more["broker"]["rounds"][1:], without.more["broker"]["rounds"][1:])
        self.assertEqual(with_it.policy, "vom")
        self.assertEqual(without.policy, "proportional")
        self.assertEqual(with_it.vms[0].options, without.vms[0].options)

    def test_options(self):
        a = demo.arguments(["broker", "--load", "tpcc", "--policies", "vom,equal"])
        self.assertEqual((a.load, a.policies), ("tpcc", ["vom", "equal"]))
        self.assertTrue(a.out.endswith("out/broker-tpcc"))
        for bad in (["broker", "--policies", "vom,vom"], ["broker", "--policies", "best"],
                    ["spot", "--load", "tpcc"], ["broker", "--tier", "park"]):
            with self.subTest(bad), self.assertRaises(SystemExit), \
                    unittest.mock.patch("sys.stderr", io.StringIO()):
                demo.arguments(bad)

    def test_histograms_of_the_agent(self):
        told = {"seq": 4, "age_ms": 3.5, "nodes": [{"node": 0, "cutoff": 9}],
                "buckets": [{"value": 7, "kib": 512, "node": 0}]}
        lab = FakeLab(told)
        self.assertEqual(scene_broker.histograms(lab, "p-", [COLD]),
                         [{"vm": COLD, "seq": 4, "cutoff": 9, "buckets": [[7, 512, 0]]}])
        self.assertEqual(scene_broker.histograms(FakeLab({**told, "age_ms": None}), "p-", [COLD]),
                         [])
        self.assertEqual(scene_broker.histograms(FakeLab(None), "p-", [COLD, WARM]), [])

    def test_held_memory_is_in_mib(self):
        _, host = broker()
        self.assertEqual(host.samples[0].mem_held_bytes, 130 * MIB)


if __name__ == "__main__":
    unittest.main()
