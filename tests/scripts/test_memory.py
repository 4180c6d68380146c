# SPDX-License-Identifier: GPL-2.0-or-later
"""`memory` on made-up runs: a good one passes, and each check fails for what it is there for."""
import os
import re
import tempfile
import unittest

import made_up  # noqa: F401: puts scripts/ on the path
from harness.lab.console import Console, statistics
from harness.record import schema
from judged import judge
from made_up_memory import MIB, Run, memory
from scenarios import outcome
from scenarios.memory import plan as plan_memory, play as scene_memory, verdict as verdict_memory


def failing(run, host):
    return {c["name"] for c in judge(run, host)["checks"] if not c["ok"]}


def with_result(**change):
    return {**Run().result, **change}


def verified(**changes):
    """Verifications of which one phase is changed: phase={field: value} or None to leave it out."""
    told = []
    for v in Run().verifications:
        change = changes.get(v["phase"], {})
        if change is not None:
            told.append({**v, **change})
    return told


class Verdict(unittest.TestCase):
    def test_good_run_passes(self):
        summary = judge(*memory())
        self.assertEqual([c for c in summary["checks"] if not c["ok"]], [])
        self.assertEqual(summary["verdict"], "pass")
        self.assertAlmostEqual(summary["demand_met_ms"], 4000, delta=300)
        self.assertAlmostEqual(summary["memory_back_ms"], 3000, delta=300)

    def test_each_check_can_fail(self):
        kept = with_result
        for name, changes in (
                ("demand_met_ms", {"give_up_s": 22.0}),
                ("demand_met_ms", {"give_up_s": None}),
                ("revoked_mib", {"revoked_mib": 60}),
                ("cpus_held_without", {"cpus_kept": 1}),
                ("host_rss_fell_pct", {"rss_floor_mib": 200}),
                ("host_rss_rose_pct", {"rss_share": 0.5}),
                ("memory_returned_pct", {"return_s": None}),
                ("memory_back_ms", {"return_s": 25.0}),
                ("memory_back_ms", {"return_s": None}),
                ("tables_verified", {"verifications": verified(without=None)}),
                ("checksums_changed", {"verifications": verified(after={"checksum": "0badbeef"})}),
                ("checksums_changed", {"verifications": verified(before=None)}),
                ("tables_incomplete", {"verifications": verified(after={"records": 189999})}),
                ("tables_incomplete", {"verifications": verified(without={"complete": False})}),
                ("damaged_records", {"verifications": verified(without={"damaged": 1})}),
                ("updates_undone", {"verifications": verified(after={"updates": 9499})}),
                ("cold_records", {"verifications": verified(without={"cold_records": 0})}),
                ("tps_without_pct", {"tps": {"before": 4000.0, "without": 1.0, "after": 4000.0}}),
                ("tps_after_pct", {"tps": {"before": 4000.0, "without": 1.0, "after": 3000.0}}),
                ("longest_stall_s", {"stall_s": 3.0}),
                ("failed_transactions", {"result": kept(failed=1)}),
                ("lost_updates", {"result": kept(lost_updates=1)}),
                ("lost_records", {"result": kept(lost_records=1)}),
                ("lost_records", {"result": {"failed": 0, "lost_updates": 0, "committed": 1}}),
                ("mem_adds_timed", {"result": kept(mem_add_ms={"n": 0})}),
                ("mem_releases_timed", {"result": kept(mem_release_ms={"n": 0})}),
                ("memory_without_reason", {"reason": " "})):
            with self.subTest(name, **changes):
                self.assertIn(name, failing(*memory(**changes)))

    def test_an_engine_that_died_is_no_good_engine(self):
        bad = failing(*memory(result=None))
        for name in ("failed_transactions", "lost_updates", "lost_records", "mem_adds_timed"):
            self.assertIn(name, bad)

    def test_ablation_fails_by_the_same_checks(self):
        changes = {"revoked_mib": 120, "verifications": verified(without={"complete": False},
                                                                 after=None),
                   "result": with_result(failed=900, lost_records=70000)}
        good, bad = (judge(*memory(**c)) for c in ({}, changes))
        self.assertEqual([c["name"] for c in good["checks"]], [c["name"] for c in bad["checks"]])
        self.assertEqual(bad["verdict"], "fail")
        self.assertLessEqual({"revoked_mib", "lost_records", "failed_transactions",
                              "tables_incomplete", "tables_verified"},
                             {c["name"] for c in bad["checks"] if not c["ok"]})

    def test_memory_that_comes_too_early_is_not_given_back(self):
        run, host = memory()
        give = next(s["t_s"] for s in run["steps"] if s["action"] == "give")
        for s in host.samples:
            if give - 4 <= s.t_s < give - 3:
                s.mem_nodes_held = f"{120 * MIB}/{2 * MIB}"
        self.assertGreater(judge(run, host)["demand_met_ms"], 9000)

    def test_throughput_is_compared_at_even_speed(self):
        run, host = memory(tps={"before": 4000.0, "without": 1000.0, "after": 2000.0})
        give = next(s["t_s"] for s in run["steps"] if s["action"] == "give")
        for s in host.samples:
            s.host_speed = 100.0 if s.t_s < give else 50.0
        self.assertNotIn("tps_after_pct", failing(run, host))

    def test_empty_run_fails_without_breaking(self):
        run, host = memory()
        host.samples, host.events, run["steps"] = [], [], []
        summary = judge(run, host)
        self.assertEqual(summary["verdict"], "fail")
        self.assertIn("not measured", outcome.render(run, [], [], summary))

    def test_a_hole_in_the_samples_fails(self):
        run, host = memory()
        host.samples = [s for s in host.samples if not 11 < s.t_s < 14]
        self.assertIn("sampling_gap_s", failing(run, host))


class Page(unittest.TestCase):
    def test_draws_memory_of_the_host_and_the_moments(self):
        run, host = memory()
        text = outcome.render(run, host.samples, host.events, judge(run, host))
        for words in ("memory of the host behind it", "node taken", "demand met", "node given",
                      "cold reads [1/s]", "mem_demand 0 MiB, node 1", "a &lt;made-up&gt; disk"):
            self.assertIn(words, text)
        text = text.replace('xmlns="http://www.w3.org/2000/svg"', "")
        self.assertIsNone(re.search(r"https?://|<script|<link|<img|@import|url\(", text))

    def test_ablation_says_what_it_costs(self):
        run, host = memory(revoked_mib=60, result=with_result(failed=7, lost_records=41))
        run["ablate"] = True
        summary = judge(run, host)
        self.assertIn("60 MiB by force; 41 records were lost with them and 7 transactions failed",
                      outcome.render(run, host.samples, host.events, summary))
        self.assertIn("no anti-caching", "\n".join(outcome.words("out/memory", summary)))

    def test_closing_words_of_a_good_run(self):
        words = outcome.words("out/memory", judge(*memory()))
        self.assertEqual(len(words), 3)
        self.assertIn("give back 120 MiB", words[0])


class Files(unittest.TestCase):
    def test_samples_and_history_survive(self):
        run, host = memory()
        with tempfile.TemporaryDirectory() as folder:
            schema.write_json(os.path.join(folder, schema.RUN), run)
            schema.write_samples(os.path.join(folder, schema.SAMPLES), host.samples)
            schema.write_history(os.path.join(folder, schema.HISTORY), host.events)
            self.assertEqual(schema.read_samples(os.path.join(folder, schema.SAMPLES)),
                             host.samples)
            self.assertEqual(schema.read_history(os.path.join(folder, schema.HISTORY)),
                             host.events)
            self.assertEqual(outcome.conclude(folder)["verdict"], "pass")


class Scene(unittest.TestCase):
    def test_plan_has_a_pool_on_each_node_and_a_disk(self):
        p = plan_memory.make(False, 3, 2.0)
        (vm,) = p.vms
        self.assertEqual(vm.pools, [0, 1])
        self.assertEqual(len(vm.disks_mib), 1)
        self.assertEqual(vm.mem_deadline_ms, p.more["memory"]["deadline_ms"])
        self.assertIn("--seed 3", vm.options["server"])
        self.assertLessEqual(p.host["share"] * p.host["cores"], p.host["real_cpus"])

    def test_ablation_differs_only_in_the_cold_folder(self):
        with_it, without = (plan_memory.make(ablate, 1, 1.0).vms[0].options["server"]
                            for ablate in (False, True))
        self.assertEqual(with_it.replace(" --cold-dir /cold", ""), without)
        self.assertNotEqual(with_it, without)

    def test_table_does_not_fit_one_pool(self):
        p = plan_memory.make(False, 1, 1.0)
        told = p.more["memory"]
        self.assertGreater(told["records"] * 1024, 1.2 * told["pool_mib"] * MIB)

    def test_statistics_line(self):
        line = "oltp: t=1.001 workers=2 tps=1511 p50_us=1.2 held_mib=2 cold=5 cold_reads=77"
        self.assertEqual(statistics(line), {"workers": 2, "tps": 1511, "held_mib": 2,
                                                         "cold": 5, "cold_reads": 77})

    def test_verification_line(self):
        line = ("oltp: t=9.1 audit ms=12.5 complete=1 records=190000 damaged=0 updates=77 "
                "content=00c0ffee00c0ffee rc=0")
        self.assertTrue(scene_memory.VERIFIED.match(line))
        self.assertFalse(scene_memory.VERIFIED.match(line[:60]), "a line that is not whole yet")
        told = {**scene_memory.verification(line), "phase": "before", "cold_records": 0}
        self.assertEqual(set(told), set(Run().verifications[0]))
        self.assertEqual((told["complete"], told["checksum"]), (True, "00c0ffee00c0ffee"))

    def test_console_gives_whole_lines_once(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "console")
            console = Console(path)
            self.assertEqual(console.lines(), [])
            with open(path, "w", encoding="utf-8") as f:
                f.write("one\r\ntw")
                f.flush()
                self.assertEqual(console.lines(), ["one"])
                f.write("o\nthree\n")
                f.flush()
                self.assertEqual(console.lines(), ["two", "three"])
                self.assertEqual(console.lines(), [])

    def test_bytes_of_a_node(self):
        _, host = memory()
        self.assertEqual(verdict_memory.bytes_on(host.samples[0], 1), 120 * MIB)
        self.assertEqual(verdict_memory.bytes_on(host.samples[0], 2), 0)


if __name__ == "__main__":
    unittest.main()
