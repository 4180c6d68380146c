# SPDX-License-Identifier: GPL-2.0-or-later
"""The report: complete, self-contained, and honest about emulation."""
import os
import re
import tempfile
import unittest
import xml.etree.ElementTree as ET

import made_up
from harness.draw import chart
from harness.record import schema
from scenarios import outcome
from scenarios.outcome import summarize


def page(run, host):
    return outcome.render(run, host.samples, host.events,
                         summarize(run, host.samples, host.events))


def svg(text):
    return ET.fromstring(re.search(r"<svg.*?</svg>", text, re.S).group(0))


class Page(unittest.TestCase):
    def test_needs_no_network_and_no_script(self):
        for run, host in (made_up.spot(), made_up.scale()):
            text = page(run, host).replace('xmlns="http://www.w3.org/2000/svg"', "")
            found = re.search(r"https?://|<script|<link|<img|@import|url\(", text)
            self.assertIsNone(found, found and found.group(0))

    def test_says_emulated(self):
        run, host = made_up.spot()
        self.assertGreaterEqual(page(run, host).lower().count("emulated"), 3)
        run["host"] = dict(run["host"], emulated=False, spec="auto")
        self.assertEqual(page(run, host).lower().count("emulated"), 0)

    def test_shows_each_check_with_its_bound(self):
        run, host = made_up.spot(delay_s=6)
        text = page(run, host)
        wanted = [f"<code>{c['name']}</code>"
                  for c in summarize(run, host.samples, host.events)["checks"]]
        self.assertEqual([w for w in wanted + ["<b>FAIL</b>", "verdict: fail"] if w not in text],
                         [])

    def test_shows_each_event_with_its_reason(self):
        run, host = made_up.scale()
        for i, e in enumerate(host.events):
            e.reason = f"reason <{i}>"
        text = page(run, host)
        missing = [i for i in range(len(host.events)) if f"reason &lt;{i}&gt;" not in text]
        self.assertEqual(missing, [])

    def test_ablation_says_what_it_costs(self):
        run, host = made_up.spot(share=lambda vms, vm: 1)
        run["ablate"] = True
        self.assertTrue(re.search(r"It left [0-9.]+ % of the host.{1,6}s core time unused",
                                  page(run, host)), "the cost is not there")

    def test_survives_a_run_without_samples(self):
        run, host = made_up.scale()
        host.samples, host.events = [], []
        self.assertTrue("not measured" in page(run, host))


class Figure(unittest.TestCase):
    def test_is_well_formed_with_units_and_a_line_per_vm(self):
        run, host = made_up.spot()
        root = svg(page(run, host))
        words = [t.text for t in root.iter() if t.tag.endswith("text")]
        for word in ("time [s]", "throughput [1000 transactions/s]", "CPUs held", "vm1", "vm3",
                     "vm2 joins", "vm3 left"):
            self.assertIn(word, words)
        strokes = {p.get("stroke") for p in root.iter() if p.tag.endswith("path")}
        self.assertLessEqual(set(chart.COLOURS[:3]), strokes)

    def test_line_follows_the_samples(self):
        line = chart.Line([(0, 0), (5, 10), (10, 5)], "#000")
        root = ET.fromstring(chart.draw([chart.Panel("y", 100, [line], top=10)], [], 0, 10))
        d = next(p for p in root.iter() if p.tag.endswith("path")).get("d")
        points = [tuple(map(float, p.split())) for p in re.findall(r"[ML]([\d. ]+)", d)]
        self.assertEqual(points[1][1], chart.TOP)                       # 10 of 10: at the top
        self.assertEqual(points[0][1], chart.TOP + 100)                 # 0: at the bottom
        self.assertAlmostEqual(points[1][0] - points[0][0], points[2][0] - points[1][0], delta=0.2)

    def test_ticks_are_round_and_few(self):
        self.assertEqual(chart.nice_ticks(0, 8.7, 5), [0, 2, 4, 6, 8])
        self.assertEqual(chart.nice_ticks(0, 1, 5), [0, 0.2, 0.4, 0.6, 0.8, 1.0])
        for high in (0.003, 7, 49.5, 123456):
            self.assertLessEqual(len(chart.nice_ticks(0, high, 6)), 7)


class Folder(unittest.TestCase):
    def test_report_can_be_made_again_from_the_files(self):
        run, host = made_up.spot()
        with tempfile.TemporaryDirectory() as folder:
            schema.write_json(os.path.join(folder, schema.RUN), run)
            schema.write_samples(os.path.join(folder, schema.SAMPLES), host.samples)
            schema.write_history(os.path.join(folder, schema.HISTORY), host.events)
            first = outcome.conclude(folder)
            self.assertEqual(outcome.conclude(folder), first)
            self.assertEqual(schema.read_json(os.path.join(folder, schema.SUMMARY)), first)
            self.assertEqual(schema.summary_problems(first), [])
            self.assertTrue(os.path.getsize(os.path.join(folder, schema.REPORT)) > 10000)
            self.assertEqual(len(outcome.words(folder, first)), 3)

    def test_ledger_is_shown_where_there_is_one(self):
        run, host = made_up.spot()
        row = {"vm": "vm<1>", "resource": "cpu", "unit": "usec", "rate": 125000, "metered_s": 60.0,
               "wanted": 60000000, "promised": 7500000, "got": 7000000, "violated": 500000,
               "unclear": 0, "num_intervals": 60, "num_violations": 3, "cause": "others",
               "reason": "it waited 900 ms"}
        cache = {**row, "resource": "memory", "unit": "ios", "rate": 96, "wanted": 12345}
        # No promise to it, but I/O that it is charged.
        system = {**row, "vm": "system", "resource": "io/x", "unit": "units", "rate": 0,
                  "promised": 0, "num_violations": 0}
        with tempfile.TemporaryDirectory() as folder:
            schema.write_json(os.path.join(folder, schema.RUN), run)
            schema.write_samples(os.path.join(folder, schema.SAMPLES), host.samples)
            schema.write_history(os.path.join(folder, schema.HISTORY), host.events)
            texts = []
            for answer in (None, {"ok": True, "ledger": []},
                           {"ok": True, "ledger": [row, cache, system]}):
                if answer:
                    schema.write_json(os.path.join(folder, schema.LEDGER), answer)
                outcome.conclude(folder)
                with open(os.path.join(folder, schema.REPORT), encoding="utf-8") as f:
                    texts.append(f.read())
            self.assertNotIn("<h2>Promises</h2>", texts[0])
            self.assertIn("Nothing was promised", texts[1])
            for words in ("vm&lt;1&gt;", "12.5% of a CPU", ">7.50 s<", ">7.00 s<", ">0.50 s<",
                          "3 of 60", "others: it waited 900 ms", ">a cache of 96 MiB<",
                          ">12,345<", "of 2 promises 6 intervals", ">system<"):
                self.assertIn(words, texts[2])
            del row["got"]
            schema.write_json(os.path.join(folder, schema.LEDGER), {"ledger": [row]})
            with self.assertRaisesRegex(schema.SchemaError, "row 0: got"):
                outcome.conclude(folder)

    def test_closing_words_name_what_failed(self):
        run, host = made_up.spot(delay_s=6)
        words = outcome.words("out/spot", summarize(run, host.samples, host.events))
        self.assertTrue(any(w.startswith("FAIL shares_equal_after_join_vm2") for w in words))


if __name__ == "__main__":
    unittest.main()
