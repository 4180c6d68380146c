# SPDX-License-Identifier: GPL-2.0-or-later
"""ebbctl place, from a file of facts: plan, reasons, what if."""
import json
import os
import subprocess
import tempfile
import unittest

import rig


def vm(cpu, floor=500):
    return {"c": "flat", "s": 0, "a": 90000, "u": [cpu, 400, 0], "p": [cpu, 400, 0],
            "f": [floor, 256, 0], "on": True}


def cluster(**hosts):
    """{host: {VM: CPU}}; the first host has the best scores for all others' VMs."""
    names = sorted({name for vms in hosts.values() for name in vms})
    return {"quorum": True, "hosts": {
        host: {"online": True, "utilization": {"ebb-cpu": 4000, "ebb-memory": 4096},
               "facts": {"v": 1, "cap": [4000, 4096, 0], "ready": True, "moving": "",
                         "vms": {name: vm(cpu) for name, cpu in vms.items()}},
               "scores": {name: 1000 if name in vms else 900 - 100 * i for name in names}}
        for i, (host, vms) in enumerate(sorted(hosts.items()))},
        "resources": {name: {"host": host, "settled": True, "busy": False, "migrates": True,
                             "rule": True, "stickiness": 50, "class": "flat",
                             "utilization": {"ebb-cpu": 500, "ebb-memory": 256}}
                      for host, vms in hosts.items() for name in vms}}


class Place(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="place-")
        self.addCleanup(self.folder.cleanup)
        os.mkdir(os.path.join(self.folder.name, "traces"))

    def run_place(self, facts, *more):
        path = os.path.join(self.folder.name, "facts.json")
        with open(path, "w", encoding="utf-8") as f:
            json.dump(facts, f)
        return subprocess.run(
            [os.path.join(rig.PROGRAMS, "ebbctl"), "place", "--facts", path, "--traces",
             os.path.join(self.folder.name, "traces"), "--steps", "2000", *more],
            capture_output=True, text=True)

    def place(self, facts, *more):
        done = self.run_place(facts, "--json", *more)
        self.assertEqual(done.returncode, 0, done.stderr)
        plan = json.loads(done.stdout)
        return plan, {v["vm"]: v for v in plan["vms"]}

    def test_plan_relieves_a_host_and_says_why(self):
        facts = cluster(h1={"a": 2100, "b": 2100}, h2={"c": 500}, h3={"d": 3000})
        plan, vms = self.place(facts)
        moved = [name for name, v in vms.items() if v["host"] != v["plan"]]
        self.assertEqual(len(moved), 1)
        self.assertIn(moved[0], "ab")
        self.assertEqual(vms[moved[0]]["plan"], "h2")
        self.assertEqual((plan["before"]["risk"], plan["after"]["risk"]), (1, 0))
        why = {row["host"]: row for row in vms[moved[0]]["why"]}
        self.assertTrue(why["h2"]["chosen"])
        self.assertEqual(why["h3"]["ruled_out"], ["capacity"])
        text = self.run_place(facts).stdout
        self.assertRegex(text, r"\n  h2: chosen: ")
        self.assertRegex(text, r"\n  h3: cannot take it: capacity \(cpu\)")

    def test_host_lost(self):
        facts = cluster(h1={"a": 500}, h2={"b": 500}, h3={"c": 500})
        _, vms = self.place(facts, "--host-lost", "h1")
        self.assertIn(vms["a"]["plan"], ("h2", "h3"))
        self.assertEqual(vms["a"]["pacemaker"], "h2")
        self.assertIsNone(vms["b"]["pacemaker"])
        self.assertEqual(vms["b"]["plan"], "h2")

    def test_no_host_can_take_it(self):
        facts = cluster(h1={"a": 3000}, h2={"b": 3000})
        _, vms = self.place(facts, "--host-lost", "h1")
        self.assertIsNone(vms["a"]["plan"])
        self.assertEqual(vms["a"]["refusal"], "capacity")
        self.assertIn("a can be on no host: capacity",
                      self.run_place(facts, "--host-lost", "h1").stdout)

    def test_one_more(self):
        with open(os.path.join(self.folder.name, "traces", "big.csv"), "w",
                  encoding="utf-8") as f:
            f.write("vm,step_s,cpu,memory,disk\n" + "t,600,1500,100,0\n" * 300)
        facts = cluster(h1={"a": 2000}, h2={"b": 3000}, h3={"c": 2600})
        _, vms = self.place(facts, "--add", "big")
        self.assertEqual(vms["(new)"]["plan"], "h1")
        self.assertTrue(all(v["plan"] == v["host"] for n, v in vms.items() if n != "(new)"))
        done = self.run_place(facts, "--add", "small")
        self.assertEqual(done.returncode, 1)
        self.assertIn('there are no traces of a class "small"', done.stderr)

    def test_the_reserve_of_a_new_vm_gives_way(self):
        """No host has room for what its class reaches in a day, both for what it uses now."""
        with open(os.path.join(self.folder.name, "traces", "big.csv"), "w",
                  encoding="utf-8") as f:
            f.write("vm,step_s,cpu,memory,disk\n" + "t,600,1500,100,0\n" * 300)
        facts = cluster(h1={"a": 2800}, h2={"b": 3000})
        _, vms = self.place(facts, "--add", "big")
        self.assertEqual((vms["(new)"]["plan"], vms["(new)"]["refusal"]), ("h1", None))
        why = {row["host"]: row for row in vms["(new)"]["why"]}
        self.assertEqual(why["h1"]["ruled_out"], ["reserve"])
        self.assertRegex(why["h1"]["text"], "^chosen, and the reserve gave way: the cpu ")
        self.assertNotIn("cannot take it", why["h2"]["text"])

    def test_traces_with_another_interval_are_left_out(self):
        """They are no reason to have no plan at all."""
        with open(os.path.join(self.folder.name, "traces", "odd.csv"), "w",
                  encoding="utf-8") as f:
            f.write("vm,step_s,cpu,memory,disk\n" + "t,300,1500,100,0\n" * 600 +
                    "u,600,1500,100,0\n" * 300 + "v,600,1500,,0\nw,600,-1,0,0\n")
        facts = cluster(h1={"a": 500}, h2={})
        done = self.run_place(facts, "--add", "odd")
        self.assertEqual(done.returncode, 0, done.stderr)
        for words in ("line 2: step_s is not 600", "line 902: a hole", "line 903: an amount is "):
            self.assertIn(words, done.stderr)

    def test_costs_and_traces_are_those_of_the_placer(self):
        with open(os.path.join(self.folder.name, "traces", "big.csv"), "w",
                  encoding="utf-8") as f:
            f.write("vm,step_s,cpu,memory,disk\n" + "t,600,1500,100,0\n" * 300)
        facts, path = cluster(h1={"a": 2000}, h2={}), os.path.join(self.folder.name, "placed.conf")
        with open(os.path.join(self.folder.name, "facts.json"), "w", encoding="utf-8") as f:
            json.dump(facts, f)

        def place(text):
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
            return subprocess.run(
                [os.path.join(rig.PROGRAMS, "ebbctl"), "place", "--facts",
                 os.path.join(self.folder.name, "facts.json"), "--config", path, "--add", "big"],
                capture_output=True, text=True)
        done = place(f"traces_dir = {self.folder.name}/traces\nsamples = 10\n")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("there are no traces", place("traces_dir = /nowhere\n").stderr)
        self.assertIn("placed.conf:1:", place("samples = 5\n").stderr)
        self.assertIn("move_cost_medium", place("move_cost_medium = 40\n").stderr)

    def test_wrong(self):
        facts = cluster(h1={"a": 500}, h2={})
        for argv, words in ((("--host-lost", "h9"), 'the cluster has no host "h9"'),
                            (("nobody",), 'the cluster has no VM "nobody"')):
            done = self.run_place(facts, *argv)
            self.assertEqual(done.returncode, 1)
            self.assertIn(words, done.stderr)
        facts["hosts"]["h2"]["facts"]["v"] = 2
        done = self.run_place(facts)
        self.assertIn("speaks version 2", done.stderr)
        self.assertRegex(done.stdout, r"h2 +other version")
