# SPDX-License-Identifier: GPL-2.0-or-later
"""Files of the scenarios in slices."""
import os
import tempfile
import unittest

from harness.record import schema
from made_up_slices import scaleout, tenants
from scenarios import outcome


class Files(unittest.TestCase):
    def test_samples_survive_and_the_verdict_is_the_same(self):
        for run, samples in (scaleout(), tenants()):
            with tempfile.TemporaryDirectory() as folder:
                schema.write_samples(os.path.join(folder, schema.SAMPLES), samples)
                schema.write_history(os.path.join(folder, schema.HISTORY), [])
                schema.write_json(os.path.join(folder, schema.RUN), run)
                summary = outcome.conclude(folder)
                self.assertEqual(summary["verdict"], "pass")
                self.assertEqual(len(outcome.words(folder, summary)), 3)
                with open(os.path.join(folder, schema.REPORT), encoding="utf-8") as f:
                    self.assertIn("throughput [1000 transactions/s]", f.read())


if __name__ == "__main__":
    unittest.main()
