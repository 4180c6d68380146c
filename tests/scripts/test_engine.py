# SPDX-License-Identifier: GPL-2.0-or-later
"""What `contention`, `peak` and `isolate` share: plans, reports of engines, pages."""
import unittest
from unittest import mock

import made_up  # noqa: F401: puts scripts/ on the path
import made_up_engine
from harness.measure import engine_probe
from harness.record import schema
from judged import judge
from scenarios import demo, outcome
from scenarios.contention import plan as plan_contention
from scenarios.isolate import plan as plan_isolate
from scenarios.peak import plan as plan_peak


class Reports(unittest.TestCase):
    def test_pages_and_words_of_good_and_bad_runs(self):
        for maker, more in ((made_up_engine.contention, {"keep_all": True}),
                            (made_up_engine.peak, {"static": True}),
                            (made_up_engine.isolate, {"apart": False})):
            for options, ablate in (({}, False), (more, True)):
                run, engine = maker(**options)
                run["ablate"] = ablate
                summary = judge(run, engine)
                self.assertEqual(schema.summary_problems(summary), [])
                page = outcome.render(run, engine.samples, engine.events, summary)
                self.assertIn("</svg>", page)
                self.assertIn("Paper: " if not ablate else "expected to fail", page)
                said = "\n".join(outcome.words("out/x", summary))
                self.assertIn("Verdict: " + ("fail" if ablate else "pass"), said)

    def test_lines_of_an_engine(self):
        line = "oltp: t=3.004 workers=1 tps=538802 aborts_ps=0 p50_us=417.8 p95_us=8650.8 " \
               "p99_us=11272.2 theta=0.99 offered=539203 queue=200"
        self.assertEqual(engine_probe.report_of(line), {
            "engine_t_s": 3.004, "engine_tps": 538802.0, "theta": 0.99, "offered_ps": 539203.0,
            "queue": 200})
        self.assertIsNone(engine_probe.report_of(line.split(" offered")[0])["queue"])
        for other in ("oltp: t=2.000 load calibrated=770289", "oltp-result {}", ""):
            self.assertIsNone(engine_probe.report_of(other))

    def test_no_report_is_lost_or_used_twice(self):
        probe = engine_probe.EngineProbe(None, mock.Mock(console_dir="/nowhere"),
                                         [mock.Mock()])
        name = next(iter(probe.waiting))
        lines = [f"oltp: t={i}.0 workers=1 tps=5 theta=0.5" for i in range(4)]
        said = [lines[:3], [], [], lines[3:], [], []]
        probe.consoles[name] = mock.Mock(lines=mock.Mock(side_effect=said))
        seen = []
        for _ in range(6):
            sample = mock.Mock(vm=name, spec=["vm"])
            probe(sample)
            seen.append(getattr(sample, "engine_t_s", None))
        self.assertEqual(seen, [0.0, 1.0, 2.0, 3.0, None, None])


class Plans(unittest.TestCase):
    def test_the_ablation_differs_by_the_mechanism_only(self):
        for of, here, there in ((plan_contention, "--elastic adapt", "--elastic follow"),
                                (plan_peak, "--elastic adapt", "--elastic none")):
            good = of.make(False, 1, 1.0)
            bad = of.make(True, 1, 1.0)
            self.assertEqual(good.policy, bad.policy)
            self.assertEqual(good.vms[0].options["server"].replace(here, there),
                             bad.vms[0].options["server"])
        good = plan_isolate.make(False, 1, 1.0)
        bad = plan_isolate.make(True, 1, 1.0)
        self.assertEqual((good.policy, bad.policy), ("isolate", "fair"))
        self.assertEqual([vm.options for vm in good.vms], [vm.options for vm in bad.vms])

    def test_hosts_fit_the_machine(self):
        for of in (plan_contention, plan_peak, plan_isolate):
            host = of.make(False, 1, 1.0).host
            used = host["cores"] * host["share"] * (1.3 if host["threads"] == 2 else 1)
            self.assertLessEqual(used, 0.8 * host["real_cpus"] + 1e-9)

    def test_schedules_double_and_halve(self):
        for close_up, period in ((False, 5.0), (True, 0.5)):
            load = plan_peak.make(False, 1, 1.0, close_up=close_up)
            words = load.vms[0].options["server"].split()
            steps = [tuple(float(x) for x in s.split(":"))
                     for s in words[words.index("--rate-schedule") + 1].split(",")]
            rises = [t for t, rate in steps if rate == plan_peak.DOUBLE]
            self.assertTrue(all(abs(b - a - 2 * period) < 1e-9 for a, b in zip(rises, rises[1:])))
            self.assertEqual(steps[0][0], 0)

    def test_options_that_do_not_belong_are_refused(self):
        for argv in (["scale", "--tier", "lend"], ["spot", "--close-up"]):
            with self.assertRaises(SystemExit), mock.patch("sys.stderr"):
                demo.arguments(argv)
        a = demo.arguments(["peak", "--close-up", "--ablate"])
        self.assertTrue(a.out.endswith("peak-close-up-ablate"))


if __name__ == "__main__":
    unittest.main()
