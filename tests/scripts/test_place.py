# SPDX-License-Identifier: GPL-2.0-or-later
"""The verdict of `place`: computed from what simulations have told, and failing when it should."""
import json
import unittest
from types import SimpleNamespace
from unittest import mock

import made_up
from scenarios import outcome
from scenarios.outcome import summarize
from scenarios.place import plan, play

SETS = ("one", "two")


def told(violations, failovers, disruption_s=100.0, failovers_new=2, reserved=1.5, refused=0):
    counts = {"violations": violations, "failovers": failovers, "failovers_new": failovers_new,
              "disruption_s": disruption_s, "failover_s": 2 * disruption_s, "admitted": 100,
              "refused": refused, "deleted": 50, "reserved": reserved,
              "used": {"cpu": 0.2, "memory": 0.7, "disk": 0.4}}
    return {**counts, "days": [{**counts, "violations": violations / 7}] * 7}


def made(times=2.0, disruption=0.6, new=1, before=2, refused=0):
    """times: more violations and failovers without look-ahead; disruption: with move costs, of
    that without; new: failovers of new VMs with aru, before: without; refused: of 100."""
    runs = []
    for traces in SETS:
        for job in plan.jobs({traces: traces}):
            for seed in (1, 2, 3):
                for name in job.placers:
                    count = 10 * seed * (times if name.startswith("plb") else 1)
                    runs.append({"traces": traces, "ratio": job.ratio, "hosts": 40, "filled": 3,
                                 "dropped": 1, "as": name, "placer": name, "seed": seed, **told(
                                     count, count, 100.0 * (disruption if "mc" in name else 1),
                                     new if "aru" in name else before, 1.5,
                                     refused if name == plan.SUBJECT else 0)})
    run = made_up.run("place", [], place={"runs": runs, "seeds": [1, 2, 3], "traces": list(SETS)})
    run.update(accelerator="none", host=dict(run["host"], spec="simulated", emulated=False))
    return run


def failed(run):
    return [c["name"] for c in summarize(run, [], [])["checks"] if not c["ok"]]


class Place(unittest.TestCase):
    def test_numbers_are_those_of_the_runs(self):
        summary = summarize(made(), [], [])
        self.assertEqual(summary["verdict"], "pass")
        self.assertAlmostEqual(summary["times_fewer"]["one"]["violations"], 2.0)
        self.assertAlmostEqual(summary["disruption_less_pct"]["two"]["prv+aru"], 40.0)
        self.assertEqual(summary["disruption_less_pct"]["one"].keys(),
                         {"plb", "plb+aru", "prv", "prv+aru"})
        self.assertAlmostEqual(summary["times_fewer_alone"]["two"]["failovers"], 2.0)
        self.assertEqual(summary["new_failovers"]["prv"], 60)
        page = outcome.render(made(), [], [], summary)
        for words in ("figure 12", "figure 13", "figure 14", "3 seeds", "6 values", "2 rows"):
            self.assertIn(words, page)

    def test_each_bound_can_be_missed(self):
        self.assertEqual(failed(made(times=1.7)), ["violations_times_fewer"])
        said = "\n".join(outcome.words("out", summarize(made(times=1.7), [], [])))
        self.assertIn("FAIL violations_times_fewer: 1.7 times, must be >= 1.83 times", said)
        self.assertNotIn("transactions", said)
        self.assertEqual(failed(made(times=1.5)),
                         ["violations_times_fewer", "failovers_times_fewer"])
        self.assertEqual(failed(made(disruption=0.8)), ["disruption_less_pct"])
        self.assertEqual(failed(made(new=2)), ["new_failovers_part"])
        self.assertEqual(failed(made(new=1, before=0)), ["new_failovers_part"])
        self.assertEqual(failed(made(new=0, before=0)), [])
        self.assertEqual(failed(made(refused=2)), ["room", "capacity_part"])

    def test_the_worst_set_counts(self):
        run = made()
        for r in run["place"]["runs"]:
            if r["traces"] == "two" and r["as"] == plan.SUBJECT:
                r["violations"] *= 2
        self.assertEqual(failed(run), ["violations_times_fewer"])

    def test_the_median_counts(self):
        """Of fifteen runs of a set, seven may be bad."""
        for bad, names in ((7, []), (8, ["violations_times_fewer"])):
            run, left = made(), bad
            for r in run["place"]["runs"]:
                if r["traces"] == "one" and r["as"] == plan.SUBJECT and left:
                    r["violations"], left = 1000, left - 1
            self.assertEqual(failed(run), names)

    def test_nothing_to_avoid_does_not_count(self):
        run = made()
        for r in run["place"]["runs"]:
            if r["ratio"] == 1.4:
                r["violations"] = r["failovers"] = 0
        self.assertEqual(failed(run), [])
        for r in run["place"]["runs"]:
            r["violations"] = 0
        self.assertEqual(failed(run), ["violations_times_fewer"])

    def test_move_costs_and_room_are_judged_by_pairs(self):
        self.assertEqual(plan.PAIRS_MC, (
            ("plb", "plb+mc"), ("plb+aru", "plb+mc+aru"), ("prv", "prv+mc"),
            ("prv+aru", "prv+mc+aru")))
        self.assertEqual(plan.PAIRS_ARU, (
            ("plb", "plb+aru"), ("plb+mc", "plb+mc+aru"), ("prv", "prv+aru"),
            ("prv+mc", "prv+mc+aru")))
        # What both lack with and without room is no loss of capacity.
        run = made(refused=2)
        for r in run["place"]["runs"]:
            r["refused"] = 2
        self.assertEqual(failed(run), ["room"])
        # One set of traces with no less disruption is enough to fail.
        run = made()
        for r in run["place"]["runs"]:
            if r["traces"] == "two" and r["as"] == plan.SUBJECT:
                r["disruption_s"] = 100
        self.assertEqual(failed(run), ["disruption_less_pct"])

    def test_no_failovers_of_new_vms_say_nothing(self):
        run = made(new=0, before=0)
        self.assertEqual(failed(run), [])
        self.assertNotIn("new_failovers_part",
                         [c["name"] for c in summarize(run, [], [])["checks"]])

    def test_the_ablation_fails(self):
        """Without look-ahead the two are the same."""
        run = made()
        plain = {(r["traces"], r["ratio"], r["seed"]): r for r in run["place"]["runs"]
                 if r["as"] == plan.PLAIN}
        for r in run["place"]["runs"]:
            if r["as"] == plan.SUBJECT:
                r.update({**plain[r["traces"], r["ratio"], r["seed"]], "as": plan.SUBJECT})
        self.assertIn("violations_times_fewer", failed(run))
        self.assertIn("failovers_times_fewer", failed(run))
        self.assertEqual(plan.without_look_ahead(plan.SUBJECT), plan.PLAIN)

    def test_a_missing_run_fails(self):
        run = made()
        del run["place"]["runs"][0]
        self.assertEqual(failed(run), ["runs"])
        run["place"]["runs"] = []
        summary = summarize(run, [], [])
        self.assertEqual(summary["verdict"], "fail")
        self.assertIn("not measured", outcome.render(run, [], [], summary))


class Play(unittest.TestCase):
    def test_commands(self):
        job = plan.jobs({"made up": ""})[0]
        self.assertNotIn("--demand", job.command(1, False))
        self.assertEqual(job.command(1, False).count("--placer"), 8)
        self.assertIn("plb+mc+aru", job.command(1, True))
        self.assertNotIn("prv+mc+aru", job.command(1, True))
        self.assertIn("/x", plan.jobs({"x": "/x"})[0].command(1, False))
        self.assertEqual(plan.paths("/a/planetlab/,/a/vms.csv.gz"),
                         {"planetlab": "/a/planetlab/", "vms": "/a/vms.csv.gz"})
        for text in ("", "a,,b", "a/x,b/x"):
            self.assertRaises(ValueError, plan.paths, text)

    def test_an_ablation_keeps_the_names(self):
        job = plan.Job("x", "", 1.8, (plan.PLAIN, plan.SUBJECT))
        answer = {"hosts": 40, "filled": 0, "dropped": 0, "runs": [
            {"seed": 1, "placer": name, **told(1, 1)} for name in ("plb+mc+aru", "plb+mc+aru")]}
        done = SimpleNamespace(returncode=0, stdout=json.dumps(answer), stderr="")
        with mock.patch.object(play.subprocess, "run", return_value=done):
            runs = play.simulate(job, 1, True)
        self.assertEqual([r["as"] for r in runs], [plan.PLAIN, plan.SUBJECT])
        self.assertEqual([r["placer"] for r in runs], ["plb+mc+aru", "plb+mc+aru"])
        samples = play.samples_of(runs[1])
        self.assertEqual(len(samples), 7)
        self.assertEqual((samples[0].t_s, samples[0].cpus_held, samples[0].cpus_limit),
                         (86400, 512, 2560))


if __name__ == "__main__":
    unittest.main()
