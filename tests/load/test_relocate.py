# SPDX-License-Identifier: GPL-2.0-or-later
"""oltp-load follows a database from node to node: docs/relocation-client.md."""
import time

from rig import LoadCase

CONNECTIONS = 20
MIX = "select=20,update=40,insert=20,delete=20,count=20"


class Relocate(LoadCase):
    def begin(self, *options, connect=1, mix=MIX, n=2):
        """Start n nodes and a load on the first; return the load when the run has begun."""
        self.node = self.start_nodes(n)
        load = self.start("--connect", ",".join(x.address for x in self.node[:connect]), "--load",
                          "--rate", "300", "--seconds", "1000", "--verify", "--connections",
                          str(CONNECTIONS), "--value-bytes", "64", "--counters", "50", "--mix",
                          mix, *options)
        self.wait_for_increments(self.node[0])
        return load

    def wait_for_increments(self, node):
        """What comes before the run has none."""
        end = node.increments + 10
        self.wait_until(lambda: node.increments >= end, "the load runs")

    def tell(self, node, n, *elements):
        self.nodes.call(node.tell(n, *elements))

    def finish(self, load, node, may_break=False):
        """End the load when the node has been under load, and check it; return the summary."""
        self.wait_for_increments(node)
        lines = self.interrupt(load)
        self.assert_sums(lines)
        summary = lines[-1]
        failures = summary["failed"]["broken"] if may_break else 0
        self.assertEqual(summary["failures"], failures, summary)
        counters = summary["counters"]
        self.assertEqual((counters["lost"], counters["extra"]), (0, 0))
        self.assertGreaterEqual(counters["acknowledged"], 10)
        return summary

    def test_each_connection_is_told(self):
        load = self.begin()
        a, b = self.node
        while a.connections:
            self.tell(a, 2, "ebb-relocate", b.address, 1)
            time.sleep(0.02)
        summary = self.finish(load, b)
        self.assertEqual(summary["moves"], CONNECTIONS)
        self.assertEqual(len(summary["nodes"]), 2)
        self.assertEqual(summary["nodes"]["0"]["connections"], 0)
        self.assertEqual(summary["nodes"]["1"]["connections"], CONNECTIONS)
        self.assertGreater(summary["nodes"]["0"]["done"], 10)
        self.assertGreater(summary["nodes"]["1"]["done"], 10)

    def test_one_is_told_of_several(self):
        load = self.begin()
        a, b = self.node
        self.tell(a, 1, "ebb-relocate", b.address, 5)
        self.wait_until(lambda: len(b.connections) == 5, "five moved")
        # All get the same share of requests, so the nodes get theirs by connections.
        self.wait_for_increments(b)
        self.assertEqual((len(a.connections), len(b.connections)), (CONNECTIONS - 5, 5))
        summary = self.finish(load, b)
        self.assertEqual((summary["moves"], summary["pushes"]), (5, 1))
        self.assertGreater(summary["nodes"]["0"]["done"], summary["nodes"]["1"]["done"])

    def test_all_and_back(self):
        load = self.begin()
        a, b = self.node
        self.tell(a, 1, "ebb-relocate", b.address, 0)
        self.wait_until(lambda: len(b.connections) == CONNECTIONS, "all moved")
        self.assertEqual(len(a.connections), 0)
        self.tell(b, 1, "ebb-relocate", a.address, 0)
        self.wait_until(lambda: len(a.connections) == CONNECTIONS, "all moved back")
        self.assertEqual(self.finish(load, a)["moves"], 2 * CONNECTIONS)

    def test_pushes_of_no_use(self):
        load = self.begin()
        a = self.node[0]
        self.tell(a, 3, "ebb-relocate", "nowhere", 1)
        self.tell(a, 3, "ebb-relocate", a.address, 1)
        self.tell(a, 3, "ebb-relocate", a.address)
        self.tell(a, 3, "ebb-relocate", "some.name.invalid:1", 1)
        self.tell(a, 3, "other", "x")
        summary = self.finish(load, a)
        self.assertEqual((summary["moves"], summary["pushes"], summary["bad_pushes"]), (0, 0, 12))

    def test_the_target_is_not_there(self):
        load = self.begin()
        a, b = self.node
        self.nodes.call(b.stop_listening())
        self.tell(a, 1, "ebb-relocate", b.address, 0)
        self.wait_until(lambda: a.accepted == 2 * CONNECTIONS, "all came back")
        summary = self.finish(load, a)
        self.assertEqual(summary["nodes"]["0"]["connections"], CONNECTIONS)

    def test_closed_between_transactions(self):
        # A client of RESP2; the node that it comes from lets no new one in.
        load = self.begin("--resp", "2", connect=2, mix="select=1,count=1")
        a, b = self.node
        self.nodes.call(a.stop_listening())
        while a.connections:
            self.nodes.call(a.close_idle(2))
            time.sleep(0.02)
        # An increment that was on its way when the node closed may have been done or not.
        summary = self.finish(load, b, may_break=True)
        self.assertEqual(summary["nodes"]["1"]["connections"], CONNECTIONS)
        self.assertEqual(summary["moves"], 0)

    def test_an_update_is_not_sent_twice(self):
        for how, mix in (("before", "count=1"), ("after", "count=1"),
                         ("after", "update=1,count=1")):
            with self.subTest(how=how, mix=mix):
                load = self.begin(mix=mix, n=1)
                a = self.node[0]
                a.breaks = [how] * 10
                self.wait_until(lambda a=a: not a.breaks, "all are broken")
                summary = self.finish(load, a, may_break=True)
                self.assertEqual((summary["repeated"], summary["failures"]), (0, 10))

    def test_a_select_is_sent_again(self):
        load = self.begin(mix="select=1,count=1", n=1)
        a = self.node[0]
        a.breaks = ["after"] * 10
        self.wait_until(lambda: not a.breaks, "all are broken")
        # The others of the ten were increments.
        summary = self.finish(load, a, may_break=True)
        self.assertEqual(summary["repeated"] + summary["failures"], 10)
        self.assertGreater(summary["repeated"], 0)

    def test_a_lost_update_is_noticed(self):
        load = self.begin(mix="count=1", n=1)
        self.nodes.database.clear()
        summary = self.interrupt(load, status=1)[-1]
        self.assertGreater(summary["counters"]["lost"], 0)
        self.assertEqual(summary["counters"]["extra"], 0)
