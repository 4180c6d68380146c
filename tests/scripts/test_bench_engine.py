# SPDX-License-Identifier: GPL-2.0-or-later
"""bench-engine: what is run, and what follows from what was measured."""
import json
import unittest

import made_up  # noqa: F401: puts scripts/ on the path
from bench import engine, metrics, page

SETTINGS = engine.Settings(cpus=2, rows=4000000, load_rows=10000000, seconds=1.5)


def made_up_round(factor=1.0, two_cores=2.0, crowd=0.9, load=1.5e6, tpcc=160e3,
                  settings=SETTINGS):
    """One core: 500 K/s where the memory allows 625 K/s, times factor."""
    tps, found = 5e5 * factor, {}
    for case in engine.cases(settings):
        kind, *words = case.name.split()
        n = int(words[-1])
        if kind == "miss":
            found[case.name] = {"tps": {"header": 2e6 * n, "record": 1.5e6 * n, "all": 625e3 * n},
                                "rows_ps": 3e6 * n, "cpu_share": 1}
        elif kind == "load":
            found[case.name] = {"tps": 1, "aborts_ps": 0, "p99_us": 1, "cpu_share": 0,
                                "rows_ps": load * n}
        elif kind == "tpcc":
            found[case.name] = {"tps": tpcc * n, "aborts_ps": 0, "p99_us": 9, "rows_ps": 0,
                                "cpu_share": 1}
        else:
            times = {1: 1, 2: two_cores, 4: two_cores * crowd}.get(n, n)
            found[case.name] = {"tps": tps * times, "aborts_ps": 0, "p99_us": 2, "rows_ps": 1e6,
                                "cpu_share": 0.99 if n <= settings.cpus else 0.5}
    return found


def told(**more):
    return json.dumps({"tps": 1000.0, "aborts_ps": 1.0, "p99_us": 3.0, "seconds": 2.0,
                       "worker_cpu_seconds": 3.0, "failed_transactions": 0, "lost_updates": None,
                       "load": {"records": 4000, "threads": 2, "seconds": 0.004}, **more})


class Cases(unittest.TestCase):
    def test_each_has_a_name_of_its_own_and_all_that_is_computed_is_run(self):
        for cpus in (1, 2, 8):
            s = engine.Settings(cpus, 1000, 1000, 0.1)
            names = [c.name for c in engine.cases(s)]
            self.assertEqual(len(names), len(set(names)))
            self.assertTrue(engine.rows_of(s, [made_up_round(settings=s)]))

    def test_options(self):
        case = next(c for c in engine.cases(SETTINGS) if c.name == "ycsb no_wait theta 0.99 4")
        self.assertEqual(case.program, "oltp-bench")
        for option in ("--json", "--records=4000000", "--theta=0.99", "--cc=no_wait",
                       "--threads=4", "--no-pin", "--update=0.5", "--operations=10",
                       "--seconds=1.5"):
            self.assertIn(option, case.options)

    def test_tpcc_options(self):
        case = next(c for c in engine.cases(SETTINGS) if c.name.startswith(
            "tpcc wait_die full mix, 1 warehouses"))
        for option in ("--workload=tpcc", "--warehouses=1", "--tpcc-mix=45,43,4,4,4",
                       "--cc=wait_die", "--threads=2"):
            self.assertIn(option, case.options)

    def test_bound_and_engine_touch_as_many_records(self):
        of = {c.name: set(c.options) for c in engine.cases(SETTINGS)}
        self.assertTrue({"--records=4000000", "--accesses=10", "--update=0.5"} <= of["miss 1"])

    def test_rows_that_fit(self):
        self.assertEqual(engine.fitting_rows(4000, 1 << 40), 4000)
        self.assertEqual(engine.fitting_rows(10 ** 9, (1 << 30) + 1100 * 77), 77)
        self.assertEqual(engine.fitting_rows(10, 5), 1)


class Parse(unittest.TestCase):
    CASE = engine.ycsb(SETTINGS, "no_wait", "uniform", 2)

    def test_result(self):
        self.assertEqual(engine.parse(self.CASE, told()),
                         {"tps": 1000.0, "aborts_ps": 1.0, "p99_us": 3.0, "cpu_share": 0.75,
                          "rows_ps": 1e6})

    def test_miss_bound(self):
        found = engine.parse(engine.cases(SETTINGS)[0], json.dumps(
            {"records": 10, "fill_seconds": 2, "cpu_share": 0.5,
             "tps": {"header": 3, "record": 2, "all": 1}}))
        self.assertEqual(found, {"tps": {"header": 3, "record": 2, "all": 1}, "rows_ps": 5,
                                 "cpu_share": 0.5})

    def test_what_is_wrong_is_no_number(self):
        for wrong in ({"lost_updates": 1}, {"failed_transactions": 2}):
            with self.assertRaises(engine.Wrong):
                engine.parse(self.CASE, told(**wrong))


class Numbers(unittest.TestCase):
    def setUp(self):
        rounds = [made_up_round(f) for f in (1.0, 0.8, 1.2, 1.1, 0.9)]
        self.rows = engine.rows_of(SETTINGS, rounds)
        self.of = {(m["name"], m["size"], m["variant"]): m for m in self.rows}

    def median(self, *key):
        return self.of[key]["median"]

    def test_medians_of_five(self):
        self.assertEqual(self.median("ycsb uniform", "1 core", "no_wait"), 500)
        self.assertEqual(self.median("ycsb theta 0.6", "2 cores", "wait_die"), 1000)
        self.assertEqual(self.median("ycsb uniform", "2 cores", engine.MISS), 1250)
        self.assertEqual(self.of["ycsb uniform", "1 core", "no_wait"]["n"], 5)

    def test_ratios(self):
        self.assertEqual(self.median(engine.SHARE, "1 core", "no_wait"), 80)
        self.assertEqual(self.median(f"{engine.SHARE}: header", "2 cores", "no_wait"), 25)
        self.assertEqual(self.median(engine.scaling_name(2), "uniform", "no_wait"), 2)
        self.assertEqual(self.median(engine.scaling_name(2), "uniform", engine.MISS), 2)
        self.assertEqual(self.median(engine.CROWDED, engine.CONTENDED, "wait_die"), 90)

    def test_loading_counts_per_core(self):
        self.assertEqual(self.median(engine.LOAD, "2 cores", "engine"), 1.5)
        self.assertEqual(self.median(engine.COLD_LOAD, "2 cores", "engine"), 0.5)
        self.assertEqual(self.median(engine.COLD_LOAD, "2 cores", "memory alone"), 3)

    def test_disturbed_runs_are_counted(self):
        said = engine.notes(SETTINGS, [made_up_round()])[-1]
        # Four workers on two cores have half a core each, and that is not held against them.
        self.assertIn("; 0 of ", said)
        one = made_up_round()
        one["ycsb no_wait uniform 1"]["cpu_share"] = 0.9
        self.assertIn("; 1 of ", engine.notes(SETTINGS, [one])[-1])

    def test_page_and_shape(self):
        summary = {"benchmark": "engine", "title": "t", "accelerator": "none",
                   "host": {"spec": "native"}, "versions": {"ebb": "0"},
                   "started_at": "2020-01-01T00:00:00+00:00", "duration_s": 1.0, "notes": [],
                   "metrics": self.rows, "bounds": engine.bounds(SETTINGS, self.rows)}
        self.assertEqual(metrics.problems(summary), [])
        text = page.render(summary)
        self.assertIn("no VM", text)
        # Bars share one scale, and so only what has its unit is drawn.
        drawn = text[text.index("<svg"):text.index("</svg>")]
        self.assertIn("ycsb uniform", drawn)
        self.assertNotIn(engine.scaling_name(2), drawn)
        self.assertIn(engine.scaling_name(2), text)


class Bounds(unittest.TestCase):
    def holds(self, **more):
        rows = engine.rows_of(SETTINGS, [made_up_round(**more)])
        return [b["ok"] for b in engine.bounds(SETTINGS, rows)]

    def test_all_hold(self):
        self.assertEqual(self.holds(), [True] * 8)

    def test_each_can_fail(self):
        self.assertEqual(self.holds(factor=0.89), [False] + [True] * 7)
        self.assertEqual(self.holds(factor=0.79), [False, False] + [True] * 6)
        self.assertEqual(self.holds(two_cores=1.89), [True, True, False] + [True] * 5)
        self.assertEqual(self.holds(tpcc=149e3), [True] * 3 + [False] + [True] * 4)
        self.assertEqual(self.holds(tpcc=59e3), [True] * 3 + [False] * 2 + [True] * 3)
        self.assertEqual(self.holds(crowd=0.79), [True] * 5 + [False] + [True] * 2)
        self.assertEqual(self.holds(load=0.99e6), [True] * 6 + [False] * 2)

    def test_one_core_has_no_scaling(self):
        s = engine.Settings(1, 1000, 1000, 0.1)
        rows = engine.rows_of(s, [made_up_round(settings=s)])
        self.assertFalse(any("two cores to one" in b["text"] for b in engine.bounds(s, rows)))


if __name__ == "__main__":
    unittest.main()
