# SPDX-License-Identifier: GPL-2.0-or-later
"""`rebalance` on made-up runs: a good one passes, and each check fails for what it is there for."""
import io
import os
import re
import tempfile
import time
import unittest
import unittest.mock
import xml.etree.ElementTree as ET

import made_up  # noqa: F401: puts scripts/ on the path
from harness.draw import heatmap
from harness.judge import delivery
from harness.lab import domain
from harness.measure import core_meter
from harness.record import cores, schema
from harness.stage.stage import SceneError
from judged import judge
from made_up_rebalance import ACTIVE, NAMES, Run, rebalance
from scenarios import demo, outcome
from scenarios.rebalance import (figure as figure_rebalance, plan as plan_rebalance,
                                 play as scene_rebalance, verdict as verdict_rebalance)


def failing(run, host):
    return {c["name"] for c in judge(run, host)["checks"] if not c["ok"]}


def both(**modes):
    return {"static": [80.0] * 5, "rebalanced": [100.0] * 5, **modes}


class Verdict(unittest.TestCase):
    def test_good_run_passes(self):
        summary = judge(*rebalance(hot_s={"static": 12.0, "rebalanced": 0.0}))
        self.assertEqual([c for c in summary["checks"] if not c["ok"]], [])
        static, moved = (summary["modes"][mode][0] for mode in plan_rebalance.MODES)
        self.assertEqual((static["hot"], static["hot_intervals"], static["intervals"]),
                         (48, 24, 32))
        self.assertEqual((moved["hot"], moved["intervals"]), (0, 32))
        self.assertAlmostEqual(static["skew"]["tps"], 4 * 80, delta=1)
        self.assertAlmostEqual(next(c["value"] for c in summary["checks"]
                                    if c["name"] == "tps_pct"), 125, delta=1)

    def test_each_check_can_fail(self):
        for name, changes in (
                ("hot_static", {"hot_s": {"static": 1.0, "rebalanced": 0.0}}),
                ("hot_pct", {"hot_s": {"static": 12.0, "rebalanced": 1.0}}),
                ("skew_shared_cores", {"shared_cores": both(static=[3] * 5)}),
                ("skew_shared_cores", {"shared_cores": both(rebalanced=[3] + [4] * 4)}),
                ("tps_pct", {"tps": both(rebalanced=[90.0] * 5)}),
                ("p99_pct", {"p99_us": {"static": [300000] * 5, "rebalanced": [160000] * 5}}),
                ("moves_too_often", {"moves": [8.0, 8.5]}),
                ("failed_transactions", {"result": {**Run().result, "failed": 1}}),
                ("lost_updates", {"result": {**Run().result, "lost_updates": 1}})):
            with self.subTest(name, **changes):
                self.assertIn(name, failing(*rebalance(**changes)))

    def test_moves_after_a_change_of_load_are_no_oscillation(self):
        self.assertNotIn("moves_too_often", failing(*rebalance(moves=[0.5, 1.0, 1.5])))
        self.assertNotIn("moves_too_often", failing(*rebalance(moves=[7.0, 8.0, 9.0])))

    def test_the_median_of_the_seeds_counts(self):
        tps = both(rebalanced=[100.0, 70.0, 100.0, 60.0, 100.0])
        run, host = rebalance(seeds=5, tps=tps)
        self.assertNotIn("tps_pct", failing(run, host))
        self.assertEqual(len(judge(run, host)["tps_pct_by_seed"]), 5)
        tps = both(rebalanced=[100.0, 70.0, 70.0, 60.0, 100.0])
        self.assertIn("tps_pct", failing(*rebalance(seeds=5, tps=tps)))

    def test_ablation_fails_by_the_same_checks(self):
        good = judge(*rebalance())
        bad = judge(*rebalance(ablate=True, hot_s={"static": 12.0, "rebalanced": 12.0},
                               tps=both(rebalanced=[80.0] * 5), moves=[],
                               p99_us={"static": [300000] * 5, "rebalanced": [300000] * 5}))
        self.assertEqual([c["name"] for c in good["checks"]], [c["name"] for c in bad["checks"]])
        self.assertLessEqual({"hot_pct", "tps_pct", "p99_pct"},
                             {c["name"] for c in bad["checks"] if not c["ok"]})

    def test_empty_run_fails_without_breaking(self):
        run, host = rebalance()
        host.samples, host.events, run["steps"], run["cores"] = [], [], [], []
        summary = judge(run, host)
        self.assertEqual(summary["verdict"], "fail")
        self.assertIn("not measured", outcome.render(run, [], [], summary))

    def test_a_run_without_cores_is_not_measured(self):
        run, host = rebalance()
        del run["cores"]
        self.assertLessEqual({"hot_static", "hot_pct"}, failing(run, host))


class Cores(unittest.TestCase):
    def test_use_is_what_threads_used_of_the_share(self):
        where = {0: {1: "vm1", 2: "vm2"}, 1: {3: "vm2", 4: "vm1"}}
        used = core_meter.used_of({1: (5.0, 1.0), 2: (7.0, 1.0)},
                             {1: (5.2, 2.8), 2: (7.1, 1.1), 3: (1.0, 9.0)}, where)
        self.assertEqual(used[1], {3: (0.0, 0.0)})
        rows = core_meter.rows_of(9.0, 2.0, dict.fromkeys(where, delivery.Core(0.2, 0.2)), used,
                                  where)
        self.assertEqual([r.core for r in rows], [0, 1])
        self.assertAlmostEqual(rows[0].vms["vm1"], 0.5)
        self.assertAlmostEqual(rows[0].busy, 0.75)
        # The one was ready for the whole interval, so the core could have been used for all of it.
        self.assertAlmostEqual(rows[0].due, 1.0)
        # Not seen before, or gone: nothing is known of them.
        self.assertEqual(rows[1].busy, 0.0)

    def test_hot_needs_two_that_compute(self):
        def hot(**vms):
            return cores.is_hot(cores.Row(1.0, 1.0, 0, sum(vms.values()), due, vms), 0.95, 0.05)
        due = 0.0
        self.assertTrue(hot(a=0.9, b=0.06))
        self.assertFalse(hot(a=0.98, b=0.01))
        self.assertFalse(hot(a=0.5, b=0.4))
        due = 0.97      # others have taken the rest
        self.assertTrue(hot(a=0.5, b=0.4))
        self.assertFalse(hot(a=0.9))

    def test_pairs_are_on_the_same_cores(self):
        places = {0: {"a", "b"}, 1: {"a", "b"}, 2: {"c", "d", "e"}, 3: {"c", "d", "f"}}
        self.assertEqual(scene_rebalance.pairs(places), [["a", "b"], ["c", "d"]])
        self.assertEqual(scene_rebalance.shared(places, ["a", "b", "e"]), 2)
        self.assertEqual(scene_rebalance.shared(places, ["a", "c"]), 0)

    def test_rows_survive_the_file(self):
        rows = [cores.Row(1.5, 1.0, 3, 0.75, 0.8, {"vm1": 0.5, "vm2": 0.25}),
                cores.Row(2.5, 1.0, 3, 0.0, 0.0, {})]
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, schema.CORES)
            cores.write(path, rows)
            self.assertEqual(cores.read(path), rows)
            for text in ("t_s,core\n", ",".join(cores.COLUMNS) + "\n1,2,x,4,\n"):
                with open(path, "w", encoding="utf-8") as f:
                    f.write(text)
                with self.assertRaises(schema.SchemaError):
                    cores.read(path)

    def test_threads_with_a_promise_count(self):
        with tempfile.TemporaryDirectory() as host:
            for group, threads in (("", "1 2"), ("r3", "3"), ("rest", "4"), ("rest/r5", "5")):
                folder = os.path.join(host, "c0", group)
                os.makedirs(folder, exist_ok=True)
                with open(os.path.join(folder, "cgroup.threads"), "w", encoding="ascii") as f:
                    f.write(threads)
            self.assertEqual(sorted(core_meter.threads_on(host, 0)), [1, 2, 3, 4, 5])
            self.assertEqual(core_meter.threads_on(host, 1), [])

    def test_meter_gives_a_row_for_each_core_and_interval(self):
        meter = core_meter.Meter("no-such-group", 2, 1.0, {})
        self.assertEqual(meter.places(), {})
        times = {7: (1.0, 5.0)}
        meter.places = lambda: {0: {7: "vm1"}, 1: {}}
        with unittest.mock.patch.object(core_meter, "cpu_times", lambda t: times[t]), \
                unittest.mock.patch.object(core_meter, "quotas_of",
                                           lambda *_: delivery.Core(0.5, 0.5)):
            meter.look(10.0)
            times[7] = (1.25, 5.25)
            meter.look(10.5)
            self.assertEqual(meter.rows, [])
            self.assertEqual(meter.given, {"vm1": delivery.Delivered(0.25, 0.25)})
            times[7] = (1.35, 5.65)
            meter.look(11.0)
        self.assertEqual([(r.core, round(r.busy, 3), round(r.due, 3)) for r in meter.rows],
                         [(0, 0.7, 1.0), (1, 0, 0)])
        self.assertAlmostEqual(meter.given["vm1"].missing, 0.3)

    def test_cpu_time_of_this_thread_grows(self):
        before = core_meter.cpu_times("self")[0]
        # The kernel brings it up to date at a tick or a switch.
        until = time.monotonic() + 60
        while core_meter.cpu_times("self")[0] <= before:
            self.assertLess(time.monotonic(), until)
        self.assertIsNone(core_meter.cpu_times(2 ** 30))

    def test_quotas_and_threads_are_read_in_both_versions(self):
        def write(name, text):
            os.makedirs(os.path.dirname(os.path.join(path, name)), exist_ok=True)
            with open(os.path.join(path, name), "w", encoding="ascii") as f:
                f.write(text)
        with tempfile.TemporaryDirectory() as path:
            write("c0/cpu.max", "2000 10000\n")
            write("c0/cgroup.threads", "11\n12\n")
            for group, quota, tasks in (("c1", 2600, ""), ("c1/t0", 2000, "21\n"),
                                        ("c1/t1", 2000, "22\n")):
                write(group + "/cpu.cfs_quota_us", f"{quota}\n")
                write(group + "/cpu.cfs_period_us", "10000\n")
                write(group + "/tasks", tasks)
            write("c2/cpu.cfs_quota_us", "-1\n")
            write("c2/cpu.cfs_period_us", "10000\n")
            self.assertEqual(core_meter.quotas_of(path, 0), delivery.Core(0.2, 0.2))
            self.assertEqual(core_meter.quotas_of(path, 1), delivery.Core(0.26, 0.2))
            self.assertEqual(core_meter.quotas_of(path, 2), delivery.Core(1.0, 1.0))
            self.assertIsNone(core_meter.quotas_of(path, 3))
            self.assertEqual(core_meter.threads_on(path, 0), [11, 12])
            self.assertEqual(sorted(core_meter.threads_on(path, 1)), [21, 22])
            self.assertEqual(core_meter.threads_on(path, 3), [])


class HeatMap(unittest.TestCase):
    def test_colours_darken(self):
        def light(part):
            text = heatmap.colour(part)
            return sum(int(text[i:i + 2], 16) for i in (1, 3, 5))
        parts = [light(i / 10) for i in range(11)]
        self.assertEqual(parts, sorted(parts, reverse=True))
        self.assertEqual(heatmap.colour(1.7), heatmap.colour(1.0))
        self.assertEqual(heatmap.colour(None), heatmap.NOTHING)

    def test_draws_a_cell_for_each_interval_in_time(self):
        cells = [heatmap.Cell(i, i + 1, 0.5, f"<{i}>", i == 2) for i in range(5)]
        maps = [heatmap.Map("a & b", [("core 0", cells)], [(1, "burst")])]
        text = heatmap.draw(maps, 0, 4, "hot")
        # 21 of the legend; the last cell begins at the end.
        self.assertEqual(text.count("<rect"), 21 + 4)
        self.assertEqual(text.count('stroke-width="2"'), 1)
        self.assertIn("a &amp; b", text)
        self.assertIn("&lt;2&gt;", text)

    def test_grid_has_values_in_percent(self):
        text = heatmap.grid([("static", [1.0, 0.02, None]), ("rebalanced", [0.5])], 2)
        for words in ("100%", "2%", "?", "50%", "static"):
            self.assertIn(words, text)
        self.assertIn("<svg", heatmap.grid([("static", [])], 4))


class Page(unittest.TestCase):
    def test_draws_cores_over_time_and_figure_11(self):
        run, host = rebalance()
        text = outcome.render(run, host.samples, host.events, judge(run, host))
        for words in ("core 7", "static", "rebalanced", "hot oversubscribed cores",
                      "Each core over time, heavy skew", "48, of 1 s", "windows of 1 s",
                      "120 % (335 of 280 TPS)", "core 0, 1 s: 100% (vm1 50%, vm5 50%)"):
            self.assertIn(words, text)
        text = text.replace('xmlns="http://www.w3.org/2000/svg"', "")
        self.assertIsNone(re.search(r"https?://|<script|<link|<img|@import|url\(", text))

    def test_cells_of_a_span_only(self):
        run, _ = rebalance()
        span = verdict_rebalance.span(run, "static", 0, "burst", "bursts end")
        cells = figure_rebalance.cells(run, 0, span)
        self.assertEqual(len(cells), 32)
        self.assertEqual(sum(c.marked for c in cells), 24)
        self.assertEqual((cells[0].begin, cells[-1].end), (0, 32))

    def test_ablation_says_what_it_costs(self):
        run, host = rebalance(ablate=True)
        summary = judge(run, host)
        self.assertIn("no rebalancing", outcome.render(run, host.samples, host.events, summary))
        words = "\n".join(outcome.words("out/rebalance", summary))
        self.assertIn("cores that stay as they were given", words)

    def test_closing_words_of_a_good_run(self):
        words = outcome.words("out/rebalance", judge(*rebalance()))
        self.assertEqual(len(words), 3)
        self.assertIn("cores being given anew", words[0])


class Files(unittest.TestCase):
    def test_verdict_comes_from_the_files(self):
        run, host = rebalance()
        with tempfile.TemporaryDirectory() as folder:
            cores.write(os.path.join(folder, schema.CORES), run.pop("cores"))
            schema.write_json(os.path.join(folder, schema.RUN), run)
            schema.write_samples(os.path.join(folder, schema.SAMPLES), host.samples)
            schema.write_history(os.path.join(folder, schema.HISTORY), host.events)
            self.assertEqual(outcome.conclude(folder)["verdict"], "pass")
            # From summary.json, where keys are text, as from memory.
            summary = schema.read_json(os.path.join(folder, schema.SUMMARY))
            self.assertEqual(list(summary["modes"]["static"][0]["core_means"])[:2], ["0", "1"])


class Scene(unittest.TestCase):
    def test_twice_as_many_cpus_as_cores(self):
        p = plan_rebalance.make(False, 3, 1.0, seeds=2)
        self.assertEqual(sum(vm.startup_cpus for vm in p.vms), 2 * p.host["cores"])
        self.assertLessEqual(p.host["share"] * p.host["cores"], p.host["real_cpus"])
        self.assertEqual([t["seed"] for t in p.more["rebalance"]["seeds"]], [3, 4])
        self.assertEqual(p.more["rebalance"]["modes"], {"static": False, "rebalanced": True})
        self.assertEqual(plan_rebalance.make(True, 3, 1.0).more["rebalance"]["modes"],
                         {"static": False, "rebalanced": False})

    def test_the_sla_says_that_cores_are_shared(self):
        (vm, *_) = plan_rebalance.make(False, 1, 1.0).vms
        boot = domain.Boot("/qemu", "/vmlinuz", "/initramfs", "", "tcg", "p-", "/link", "/vm")
        sla = ET.fromstring(domain.xml(boot, vm)).find(
            f"metadata/{{{domain.EBB_NS}}}sla/{{{domain.EBB_NS}}}cpu")
        self.assertEqual(sla.get("shared"), "yes")

    def test_loads_fit_only_with_the_right_neighbours(self):
        p = plan_rebalance
        self.assertGreater(p.HIGH + p.LOW, 1.0)
        self.assertLess(max(p.HIGH, 1.5 * 3 * p.LOW), p.HOT)
        self.assertGreater(2 * p.SKEW, 1.15)
        self.assertLess(p.SKEW, p.HOT)

    def test_bursts_are_the_seeds(self):
        first = plan_rebalance.bursts(1, NAMES, 20)
        self.assertEqual(first, plan_rebalance.bursts(1, NAMES, 20))
        self.assertNotEqual(first, plan_rebalance.bursts(2, NAMES, 20))
        self.assertFalse(any(a == b for a, b in zip(first, first[1:])))

    def test_worst_start_takes_those_on_the_same_cores(self):
        places = {0: {"vm1", "vm5"}, 1: {"vm1", "vm5"}, 2: {"vm2", "vm6"}, 3: {"vm2", "vm6"},
                  4: {"vm3", "vm7"}, 5: {"vm3", "vm7"}, 6: {"vm4", "vm8"}, 7: {"vm4", "vm8"}}
        self.assertEqual(scene_rebalance.worst(places, NAMES, 0), ACTIVE)
        self.assertEqual(scene_rebalance.worst(places, NAMES, 3), ["vm4", "vm8", "vm1", "vm5"])
        self.assertEqual(len(scene_rebalance.worst({}, NAMES, 1)), 4)

    def test_each_vm_rests_as_soon_as_its_engine_runs(self):
        _, host = rebalance()
        up = host.samples[0]
        boots = schema.Sample(**{**up.__dict__, "workers": 0})

        class Stage:
            scale, told = 1.0, []

            def tell(self, name, line):
                self.told.append((name, line))

            def watch(self, _seconds, until):
                looks = ({"vm2": up, "vm3": boots}, {"vm2": up, "vm3": boots, "vm4": up},
                         {"vm2": up, "vm3": up, "vm4": up})
                return any(until(state) for state in looks[:self.looks])
        stage = Stage()
        stage.looks = 3
        scene_rebalance._rest(stage, ["vm2", "vm3", "vm4"])
        self.assertEqual(stage.told, [(vm, "rate 0") for vm in ("vm2", "vm4", "vm3")])
        stage.looks = 2
        with self.assertRaises(SceneError):
            scene_rebalance._rest(stage, ["vm2", "vm3", "vm4"])

    @staticmethod
    def work_of(known):
        """Of two VMs in 10 s, looked at each second; known: those looks that know CPU times."""
        work = scene_rebalance._Work(["vm1", "vm2"])
        for t in range(11):
            cpu_ms = 1000.0 * t if t in known else None
            work.look({vm: schema.Sample(t, vm, 2, 2, 0, 0, None, None, None, None,
                                         committed=100 * t, report_age_ms=0, cpu_ms=cpu_ms,
                                         cpu_due_ms=cpu_ms)
                       for vm in ("vm1", "vm2")})
        return work

    def test_work_counts_between_looks_that_know_cpu_times(self):
        for known in (range(11), range(1, 9), (2, 9)):
            with self.subTest(known=known):
                self.assertAlmostEqual(self.work_of(known).rate(10.0), 200, delta=0.1)

    def test_work_of_unknown_cpu_time_is_an_error(self):
        for known in ((), (3,), (2, 5)):
            with self.subTest(known=known), self.assertRaises(SceneError):
                self.work_of(known).rate(10.0)

    def test_options(self):
        self.assertEqual(demo.arguments(["rebalance", "--seeds", "5"]).seeds, 5)
        for bad in (["rebalance", "--seeds", "6"], ["spot", "--seeds", "2"]):
            with self.subTest(bad), self.assertRaises(SystemExit), \
                    unittest.mock.patch("sys.stderr", io.StringIO()):
                demo.arguments(bad)


if __name__ == "__main__":
    unittest.main()
