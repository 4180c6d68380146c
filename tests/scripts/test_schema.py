# SPDX-License-Identifier: GPL-2.0-or-later
"""Files of a run: what is written is read back, and what is malformed is named."""
import os
import tempfile
import unittest

import made_up
from harness.record import schema
from scenarios.outcome import summarize


class Files(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = os.path.join(self.folder.name, "file")

    def write(self, text):
        with open(self.path, "w", encoding="utf-8") as f:
            f.write(text)

    def problem(self, read):
        with self.assertRaises(schema.SchemaError) as caught:
            read(self.path)
        return str(caught.exception)

    def test_samples_begin_with_the_agreed_columns(self):
        schema.write_samples(self.path, [])
        with open(self.path, encoding="utf-8") as f:
            head = f.readline()
        self.assertTrue(head.startswith("t_s,vm,cpus_held,cpus_limit,mem_held_bytes,"
                                        "mem_limit_bytes,tps,aborts_ps,p50_us,p99_us,"), head)

    def test_samples_survive(self):
        _, host = made_up.spot()
        host.samples[0].tps = None
        host.samples[0].p99_us = None
        schema.write_samples(self.path, host.samples)
        self.assertEqual(schema.read_samples(self.path), host.samples)

    def test_history_survives(self):
        _, host = made_up.spot()
        schema.write_history(self.path, host.events)
        self.assertEqual(schema.read_history(self.path), host.events)

    def test_later_columns_are_left_alone(self):
        schema.write_samples(self.path, made_up.spot()[1].samples[:2])
        with open(self.path, encoding="utf-8") as f:
            lines = f.read().splitlines()
        self.write("\n".join(line + extra for line, extra in
                             zip(lines, (",later", ",1", ",2"))) + "\n")
        self.assertEqual(len(schema.read_samples(self.path)), 2)

    def test_wrong_head_is_named(self):
        self.write("t_s,vm,cpus\n")
        self.assertIn("t_s,vm,cpus_held", self.problem(schema.read_samples))

    def test_empty_file_is_named(self):
        self.write("")
        self.assertIn("first line", self.problem(schema.read_samples))

    def test_short_row_is_named(self):
        schema.write_samples(self.path, [])
        with open(self.path, "a", encoding="utf-8") as f:
            f.write("1.0,vm1,2\n")
        self.assertIn(":2: 3 fields", self.problem(schema.read_samples))

    def test_bad_number_is_named(self):
        _, host = made_up.spot()
        schema.write_samples(self.path, host.samples[:1])
        with open(self.path, encoding="utf-8") as f:
            text = f.read()
        self.write(text.replace(",vm1,1,", ",vm1,many,", 1))
        self.assertIn("cpus_held is 'many'", self.problem(schema.read_samples))

    def test_required_number_may_not_be_empty(self):
        schema.write_samples(self.path, made_up.spot()[1].samples[:1])
        with open(self.path, encoding="utf-8") as f:
            text = f.read()
        self.write(text.replace(",vm1,1,", ",vm1,,", 1))
        self.assertIn("cpus_held is ''", self.problem(schema.read_samples))

    def test_bad_history_line_is_named(self):
        self.write('{"t_s": 1, "vm": "a", "event": "grant"}\n[1]\n')
        self.assertIn(":2:", self.problem(schema.read_history))

    def test_broken_json_is_named(self):
        self.write("{")
        self.assertIn(self.path, self.problem(schema.read_json))


class Summary(unittest.TestCase):
    def setUp(self):
        run, host = made_up.spot()
        self.summary = summarize(run, host.samples, host.events)

    def test_good_one_has_no_problem(self):
        self.assertEqual(schema.summary_problems(self.summary), [])

    def test_each_required_field_is_missed(self):
        for name in ("scenario", "verdict", "checks", "accelerator", "host", "seed",
                     "failed_transactions", "lost_updates", "cpu_add_ms", "cpu_remove_ms",
                     "share_convergence_ms", "versions", "paper"):
            broken = dict(self.summary)
            del broken[name]
            self.assertIn(f"summary.{name} is missing", schema.summary_problems(broken))

    def test_each_field_of_a_check_is_missed(self):
        for name in ("name", "value", "unit", "bound", "ok"):
            broken = dict(self.summary, checks=[dict(self.summary["checks"][0])])
            del broken["checks"][0][name]
            self.assertIn(f"checks[0].{name} is missing", schema.summary_problems(broken))

    def test_verdict_must_follow_the_checks(self):
        self.assertTrue(schema.summary_problems(dict(self.summary, verdict="fail")))
        self.assertTrue(schema.summary_problems(dict(self.summary, verdict="maybe")))

    def test_verdict_needs_checks(self):
        self.assertTrue(schema.summary_problems(dict(self.summary, checks=[])))

    def test_wrong_types_are_named(self):
        for name, value in (("seed", "one"), ("seed", True), ("accelerator", "xen"),
                            ("cpu_add_ms", {"median": 1}), ("lost_updates", "none")):
            self.assertTrue(schema.summary_problems(dict(self.summary, **{name: value})), name)


if __name__ == "__main__":
    unittest.main()
