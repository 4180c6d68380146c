# SPDX-License-Identifier: GPL-2.0-or-later
"""The verdict of `cluster`: computed from what was recorded, and failing when it should."""
import unittest
import xml.etree.ElementTree as ET

import made_up  # noqa: F401
from harness.judge import grants
from harness.lab import cluster
from judged import value
from made_up_cluster import HOMES, MOVER, run
from scenarios import outcome
from scenarios.cluster import plan


def summary_of(made):
    return outcome.summarize(made, [], [])


def failed(**told):
    return [c["name"] for c in summary_of(run(**told))["checks"] if not c["ok"]]


class Verdict(unittest.TestCase):
    def test_a_good_run_passes(self):
        summary = summary_of(run())
        self.assertEqual(summary["verdict"], "pass")
        self.assertAlmostEqual(value(summary, "move_pause_ms"), 400.0)
        self.assertEqual(value(summary, "again_s"), 5.0)
        self.assertEqual(summary["restarts"]["db3"],
                         {"ran_s": 5.0, "served_s": 12.0, "host": "h2"})
        self.assertEqual([(c["vm"], c["from"], c["to"], c["live"]) for c in summary["changes"]
                          if c["from"]],
                         [(MOVER, "h1", "h3", True), ("db3", "h3", "h2", False),
                          (MOVER, "h3", "h2", False)])

    def test_what_clients_feel_of_the_move_fails(self):
        self.assertEqual(failed(pause_s=1.1), ["move_pause_ms"])
        self.assertEqual(failed(failed=1), ["failed_at_move"])

    def test_a_vm_that_stays_fails(self):
        self.assertEqual(failed(moved_to=None), ["moved", "moved_from_hot", "moved_to_best",
                                                 "failed_at_move", "move_pause_ms"])

    def test_a_move_that_nobody_recommended_fails(self):
        self.assertEqual(failed(why="it is to leave this host"), ["moved_from_hot"])

    def test_a_move_before_the_load_has_grown_fails(self):
        self.assertEqual(failed(grows_s=25.0), ["moved"])

    def test_another_host_than_the_best_fails(self):
        self.assertEqual(failed(started={"db2": "h1"}), ["placed"])
        self.assertEqual(failed(moved_to="h2"), ["moved_to_best"])
        self.assertEqual(failed(again_on="h1"), ["again_on_best"])

    def test_late_or_no_restart_fails(self):
        self.assertEqual(failed(again_s=15.5), ["again_s"])
        self.assertEqual(failed(again_s=None, served_s=None), ["again_s", "again_on_best"])

    def test_a_restart_instead_of_a_move_fails(self):
        self.assertEqual(failed(boots={vm: 2 for vm in HOMES}), ["restarts_without_loss"])

    def test_what_is_granted_twice_or_lost_fails(self):
        self.assertEqual(failed(doubled=["core 0 of h1: db1 and db2"]), ["granted_twice"])
        self.assertEqual(failed(lost_updates=1), ["lost_updates"])

    def test_the_report_says_who_was_where_and_why(self):
        made = run()
        page = outcome.render(made, [], [], summary_of(made))
        self.assertIn("scores: h3 928, h2 916, h1 0; moves to h3, which has 928", page)
        self.assertIn("started again", page)


class Traces(unittest.TestCase):
    def test_they_are_lines_of_placers(self):
        head, *lines = plan.traces()
        self.assertEqual(head, "vm,step_s,cpu,memory,disk")
        self.assertEqual(len(lines), len(plan.EARLIER) * plan.DAYS_S // plan.STEP_S)
        self.assertEqual(len({line.split(",")[0] for line in lines}), len(plan.EARLIER))


def told_vm(name, *cores, state="running", shared=False):
    return {"name": name, "state": state, "shared": shared,
            "vcpus": [{"vcpu": i, "core": core} for i, core in enumerate(cores)]}


class Grants(unittest.TestCase):
    def test_nothing_twice(self):
        self.assertEqual(grants.doubled({"h1": [told_vm("a", 0, None), told_vm("b", 1)],
                                         "h2": [told_vm("c", 0)]}), [])

    def test_a_core_of_two_vms(self):
        self.assertEqual(grants.doubled({"h1": [told_vm("a", 0), told_vm("b", 0)]}),
                         ["core 0 of h1: a and b"])
        self.assertEqual(grants.doubled({"h1": [told_vm("a", 0, shared=True),
                                                told_vm("b", 0, shared=True)]}), [])

    def test_a_vm_on_two_hosts(self):
        self.assertEqual(len(grants.doubled({"h1": [told_vm("a", 0)], "h2": [told_vm("a", 1)]})),
                         1)
        self.assertEqual(grants.doubled({"h1": [told_vm("a", 0)],
                                         "h2": [told_vm("a", state="stopped")]}), [])


MON = """<pacemaker-result><summary><current_dc present="true" with_quorum="true"/></summary><nodes>
<node name="h1" online="true" unclean="false" pending="false"/>
<node name="h2" online="true" unclean="true" pending="false"/></nodes><resources>
<resource id="fence" resource_agent="stonith:fence_ebb" role="Started"><node name="h1"/></resource>
<resource id="a" resource_agent="ocf:heartbeat:VirtualDomain" role="Started">
<node name="h1"/></resource>
<resource id="b" resource_agent="ocf:heartbeat:VirtualDomain" role="Started" pending="Migrating">
<node name="h1"/></resource>
<resource id="c" resource_agent="ocf:heartbeat:VirtualDomain" role="Stopped"/></resources>
<node_attributes><node name="h1"><attribute name="ebb-score-a" value="900"/>
<attribute name="ebb-score-b" value="-INFINITY"/><attribute name="other" value="x"/></node>
</node_attributes></pacemaker-result>"""


class Resource(unittest.TestCase):
    def test_it_has_the_attributes_that_are_asked_for(self):
        meta = cluster.resource("a", "/a.xml", {"ebb-class": "oltp"}).find("meta_attributes")
        self.assertEqual({n.get("name"): n.get("value") for n in meta},
                         {"allow-migrate": "true", "resource-stickiness": "50",
                          "ebb-class": "oltp"})


class State(unittest.TestCase):
    def test_only_the_majority_is_believed(self):
        self.assertTrue(cluster.has_quorum(ET.fromstring(MON)))
        for wrong in (MON.replace('with_quorum="true"', 'with_quorum="false"'),
                      MON.replace('present="true"', 'present="false"'),
                      "<pacemaker-result><summary/></pacemaker-result>"):
            self.assertFalse(cluster.has_quorum(ET.fromstring(wrong)))

    def test_what_crm_mon_says(self):
        state = cluster.State(ET.fromstring(MON))
        self.assertEqual(state.online, ["h1"])
        self.assertEqual([state.host_of(vm) for vm in "abc"], ["h1", None, None])
        self.assertEqual(state.scores, {"a": {"h1": 900}, "b": {"h1": None}})
