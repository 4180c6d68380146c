# SPDX-License-Identifier: GPL-2.0-or-later
"""The table of scenarios: each is whole, and nothing outside its package depends on its name.
scripts/check-layers says who may import what."""
import ast
import os
import unittest

import made_up
from scenarios import catalogue, demo

SCRIPTS = os.path.join(made_up.TOP, "scripts")
FOLDER = os.path.join(SCRIPTS, "scenarios")
PARTS = {"__init__.py", "plan.py", "play.py", "verdict.py", "figure.py", "words.py"}


def parsed(folder, name):
    with open(os.path.join(folder, name), encoding="utf-8") as f:
        return ast.parse(f.read())


def is_name_of_scenario(node):
    """`run["scenario"]`, `a.scenario`, `scenario.name`"""
    return isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and \
        node.slice.value == "scenario" or \
        isinstance(node, ast.Attribute) and ast.unparse(node).endswith((".scenario",
                                                                        "scenario.name"))


def branches(tree):
    """What asks for a scenario's name: comparisons with it, and tables by it."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and any(
                is_name_of_scenario(n) for n in (node.left, *node.comparators)):
            found.append(ast.unparse(node))
        if isinstance(node, ast.Dict) and len(
                {k.value for k in node.keys if isinstance(k, ast.Constant)} &
                set(catalogue.ALL)) > 1:
            found.append(ast.unparse(node))
    return found


class Structure(unittest.TestCase):
    # Everything but the packages of scenarios.
    shared = [(FOLDER, name) for name in os.listdir(FOLDER) if name.endswith(".py")] + [
        (folder, name) for room in ("harness", "bench")
        for folder, _, names in os.walk(os.path.join(SCRIPTS, room))
        for name in names if name.endswith(".py")]

    def test_each_folder_is_a_scenario_with_all_parts(self):
        folders = {name for name in os.listdir(FOLDER)
                   if os.path.isdir(os.path.join(FOLDER, name)) and name != "__pycache__"}
        self.assertEqual(folders, set(catalogue.ALL))
        for name in folders:
            files = {f for f in os.listdir(os.path.join(FOLDER, name)) if f.endswith(".py")}
            self.assertEqual(files, PARTS, name)

    def test_each_has_tests_of_its_own(self):
        here = os.listdir(os.path.dirname(os.path.abspath(__file__)))
        self.assertFalse({f"test_{name}.py" for name in catalogue.ALL} - set(here))

    def test_only_the_table_names_scenarios(self):
        for folder, name in self.shared:
            tree = parsed(folder, name)
            with self.subTest(name):
                self.assertEqual(branches(tree), [] if name != "demo.py" else [
                    # The same scenario, given twice.
                    "a.name != a.scenario"])

    def test_branches_would_be_seen(self):
        for text in ('run["scenario"] == "spot"', 'summary["scenario"] in NAMES',
                     'a.scenario != "peak"', 'scenario.name == "broker"',
                     '{"spot": 1, "scale": 2}[x]'):
            self.assertEqual(len(branches(ast.parse(text))), 1, text)


class Whole(unittest.TestCase):
    def test_plans_can_be_made(self):
        for name, scenario in catalogue.ALL.items():
            for more in ([], ["--ablate"]):
                a = demo.arguments([name, *more])
                p = scenario.plan(a)
                self.assertEqual(p.host["emulated"], scenario.has_vms, name)
                self.assertEqual(bool(p.vms), not scenario.is_sliced, name)

    def test_leads_can_be_filled_in(self):
        for name, scenario in catalogue.ALL.items():
            words = scenario.words
            for text in (words.lead, words.ablated_lead):
                told = text.format(host="HOST", policy="POLICY", dwell=1.0, startup=1)
                self.assertNotIn("{", told, name)
                self.assertIn("HOST", told, name)
            self.assertIn("Paper: ", words.lead, name)

    def test_a_scenario_keeps_the_name_of_its_package(self):
        for name, scenario in catalogue.ALL.items():
            self.assertEqual(scenario.evaluate.__module__, f"scenarios.{name}.verdict")
            self.assertEqual(scenario.draw.__module__, f"scenarios.{name}.figure")


if __name__ == "__main__":
    unittest.main()
