# SPDX-License-Identifier: GPL-2.0-or-later
"""Constraints of the operator's: what ebb-placed publishes never makes Pacemaker do what they
forbid, or move a VM for another one's sake, and ebbctl place plans what Pacemaker does."""
import random
import re
import unittest

import rig

APART = '<rsc_colocation id="{id}" rsc="{vm}" with-rsc="{other}" score="-INFINITY" {more}/>'
QUIET = 'influence="false"'
TOGETHER = '<rsc_colocation id="{id}" rsc="{vm}" with-rsc="{other}" score="INFINITY"/>'
SETS = ('<rsc_colocation id="{id}" score="{score}" influence="false">{sets}</rsc_colocation>')
BAN = '<rsc_location id="{id}" rsc="{vm}" node="{host}" score="-INFINITY"/>'


def sets(*all_sets):
    """Of (VMs, attributes)."""
    return "".join(f'<resource_set id="s{i}" {more}>' +
                   "".join(f'<resource_ref id="{vm}"/>' for vm in vms) + "</resource_set>"
                   for i, (vms, more) in enumerate(all_sets))


def texts(plan):
    """{host: why} of a VM that is explained."""
    return {row["host"]: row["text"] for row in plan["why"]}


class Rules(unittest.TestCase):
    def cluster(self, *vms, hosts=("h1", "h2", "h3")):
        cluster = rig.Cluster(vms, hosts)
        self.addCleanup(cluster.close)
        return cluster

    def test_apart(self):
        c = self.cluster("a", "b")
        c.constrain(APART.format(id="keep-apart", vm="b", other="a", more=QUIET))
        c.start_placers()
        where = c.settle()
        third = (set(c.hosts) - set(where.values())).pop()
        self.assertNotEqual(where["a"], where["b"])
        c.wait("neither host wants the other's VM", lambda: (c.scores("a")[where["b"]],
                                                             c.scores("b")[where["a"]]) ==
               (rig.NEVER, rig.NEVER))
        self.assertNotRegex(c.simulate(), "Migrate|Move|Stop")
        why = texts(c.place("a")["a"])
        self.assertEqual(why[where["b"]],
                         "cannot take it: anti-affinity (constraint keep-apart, b)")
        for vm, other in ("ab", "ba"):
            # Whichever is to leave, it alone does: not to where the other one is.
            c.vms[vm]["move"] = "relieves node 0"
            c.wait("its home's score falls", lambda v=vm: c.scores(v)[where[v]] == 0)
            self.assertRegex(c.simulate(), rf"(Migrate|Move)\s+{vm}\s+\( {where[vm]} -> {third} \)")
            c.vms[vm].pop("move")
            self.assertEqual(c.where(), {vm: third, other: where[other]})
            where[vm], third = third, where[vm]
            c.wait("both are at home", lambda: all(c.scores(v)[where[v]] == 1000 for v in "ab") and
                   c.scores(vm)[where[other]] == c.scores(other)[where[vm]] == rig.NEVER)
        plan = c.place("--host-lost", where["b"])["b"]
        self.assertEqual((plan["plan"], plan["pacemaker"]), (third, third))
        for host in c.hosts:
            c.stop_placer(host)
        c.power_off(where["b"])
        self.assertEqual(c.where(), {"a": where["a"], "b": third})

    def test_apart_by_fault_domain(self):
        c = self.cluster("a", "b", hosts=("h1", "h2", "h3", "h4"))
        rack = {"h1": "r1", "h2": "R1", "h3": "r2", "h4": "r2"}
        c.set_domains(**rack)
        c.constrain(APART.format(id="racks", vm="b", other="a",
                                 more=QUIET + ' node-attribute="ebb-fault-domain"'))
        c.start_placers()
        where = c.settle()
        self.assertNotEqual(rack[where["a"]].lower(), rack[where["b"]].lower())
        beside = next(h for h in c.hosts if h not in where.values() and
                      rack[h].lower() == rack[where["a"]].lower())
        c.wait("a's other rack does not want it", lambda: [s for h, s in c.scores("a").items() if
               rack[h].lower() == rack[where["b"]].lower()] == [rig.NEVER, rig.NEVER])
        self.assertEqual(texts(c.place("a")["a"])[where["b"]],
                         "cannot take it: fault domain (constraint racks, b)")
        plan = c.place("--host-lost", where["a"])["a"]
        self.assertEqual((plan["plan"], plan["pacemaker"]), (beside, beside))
        c.power_off(where["a"])
        self.assertEqual(c.where(), {"a": beside, "b": where["b"]})

    def test_together(self):
        c = self.cluster("a", "b", "c")
        c.constrain(TOGETHER.format(id="stay-together", vm="b", other="a"))
        c.start_placers()
        where = c.settle()
        home = where["a"]
        self.assertEqual(where["b"], home)
        # One of the others has room for one of them, but not for both.
        for vm in "ab":
            c.vms[vm].update(cpu=1500)
        busy, free = [h for h in c.hosts if h != home]
        c.ebbds[busy].vms["x"] = {"cpu": 2500, "floor_cpus": 0}
        c.wait("the busy host says so", lambda: max(c.scores(v)[busy] for v in "ab") < 10)
        c.vms["b"]["move"] = "relieves node 0"
        c.wait("its home's score falls", lambda: c.scores("b")[home] == 0)
        self.assertRegex(c.simulate(), rf"(Migrate|Move)\s+a\s+\( {home} -> {free} \)")
        self.assertEqual({c.where()[vm] for vm in "ab"}, {free})
        c.vms["b"].pop("move")
        c.wait("they are at home", lambda: all(c.scores(vm)[free] == 1000 for vm in "ab"))
        self.assertNotRegex(c.simulate(), "Migrate|Move|Stop")
        c.ebbds[busy].vms["x"] = {"cpu": 2500, "floor_cpus": 0}
        c.wait("it is told", lambda: "x" in c.facts(busy)["vms"])
        plans = c.place("--host-lost", free)
        self.assertEqual([(plans[v]["plan"], plans[v]["pacemaker"]) for v in "ab"],
                         2 * [(home, home)])
        self.assertRegex(texts(plans["a"])[busy], r"capacity \(cpu\).* together with b "
                         r"\(constraint stay-together\)$")
        c.power_off(free)
        self.assertEqual({c.where()[vm] for vm in "ab"}, {home})

    def test_banned_host(self):
        c = self.cluster("a")
        c.start_placers()
        home = c.settle()["a"]
        c.tool("crm_resource", "-r", "a", "--ban", "--node", home)
        plan = c.place()["a"]
        self.assertNotEqual(plan["plan"], home)
        self.assertEqual(texts(plan)[home],
                         f"cannot take it: location (constraint cli-ban-a-on-{home})")
        c.simulate()
        new = c.where()["a"]
        self.assertNotEqual(new, home)
        c.wait("the old host wants it no more", lambda: c.scores("a")[home] == rig.NEVER and
               c.scores("a")[new] == 1000)
        c.tool("crm_resource", "-r", "a", "--clear")
        c.wait("it would take it again", lambda: c.scores("a")[home] >= 900)

    def test_no_host_is_left(self):
        c = self.cluster("a", "b", "c", "d")
        c.constrain('<rsc_colocation id="spread" score="-INFINITY" influence="false"><resource_set '
                    'id="all">' + "".join(f'<resource_ref id="{vm}"/>' for vm in c.vms) +
                    "</resource_set></rsc_colocation>")
        c.start_placers()
        c.wait("scores", lambda: all(len(c.scores(vm)) == 3 for vm in c.vms))
        c.simulate()
        where = c.where()
        self.assertEqual(len(where), 3)
        self.assertEqual(set(where.values()), set(c.hosts))
        left = (set(c.vms) - set(where)).pop()
        c.wait("homes", lambda: all(c.scores(vm)[where[vm]] == 1000 for vm in where))
        plan = c.place()
        self.assertEqual({vm: p["plan"] for vm, p in plan.items()}, {**where, left: None})
        self.assertRegex(plan[left]["refusal"], r"^anti-affinity \(constraint spread, [a-c]\)$")
        for host, why in texts(plan[left]).items():
            other = next(vm for vm in where if where[vm] == host)
            self.assertEqual(why, f"cannot take it: anti-affinity (constraint spread, {other})")

    def test_several_sets(self):
        """Who has lost h1 would take h2 before h3."""
        free = 'sequential="false"'
        for score, constraint, homes, then in (
                ("-INFINITY", (("cd", free), ("ab", free)), "h1 h1 h2 h2", "h3 h3 h2 h2"),
                ("-INFINITY", (("cd", 'score="0"'), ("ab", 'score="0"')), "h1 h1 h2 h1",
                 "h2 h3 h2 h2"),
                ("-INFINITY", (("cd", free), ("ab", 'score="0"')), "h1 h1 h2 h2",
                 "h2 h3 h2 h2"),
                ("INFINITY", (("d", ""), ("c", ""), ("ab", free)), "h1 h1 h1 h1",
                 "h2 h2 h2 h2")):
            with self.subTest(score=score, constraint=constraint):
                c = self.cluster("a", "b", "c", "d")
                homes = dict(zip("abcd", homes.split()))
                c.write_scores({vm: {"h1": 600, "h2": 500, "h3": 400, home: 1000}
                                for vm, home in homes.items()})
                c.simulate()
                self.assertEqual(c.where(), homes)
                c.constrain(SETS.format(id="sets", score=score, sets=sets(*constraint)))
                self.assertNotRegex(c.simulate(), "Migrate|Move|Stop|Restart")
                plans = c.place("--host-lost", "h1")
                said = {vm: plans[vm]["pacemaker"] for vm in "abcd" if homes[vm] == "h1"}
                c.power_off("h1")
                self.assertEqual(" ".join(c.where()[vm] for vm in "abcd"), then)
                self.assertEqual({vm: c.where()[vm] for vm in said}, said)

    def test_own_rules_are_not_the_operators(self):
        c = self.cluster("a")
        c.start_placers()
        home = c.settle()["a"]
        deaf = next(h for h in c.hosts if h != home)
        c.ebbds[deaf].libvirt = "down"
        c.wait("it can take none", lambda: c.scores("a")[deaf] == rig.NEVER)
        self.assertIn('score-attribute="ebb-score-a"', c.tool("cibadmin", "-Q"))
        self.assertNotIn("constraint", str(c.place("a")))
        c.ebbds[deaf].libvirt = "up"
        c.wait("it can again", lambda: c.scores("a")[deaf] >= 900)

    def test_constraints_that_are_not_understood_are_named(self):
        c = self.cluster("a", "b")
        for xml, words in (
                (APART.format(id="c1", vm="b", other="a", more='node-attribute="site"'),
                 "constraint c1: its node-attribute is not understood"),
                ('<rsc_location id="c2" rsc="a"><rule id="c2-r" score="-INFINITY"><date_expression '
                 'id="c2-e" operation="gt" start="2020-01-01"/></rule></rsc_location>',
                 "constraint c2: its rule is not understood"),
                (APART.format(id="c3", vm="b", other="a", more=""),
                 'constraint c3: without influence=')):
            c.constrain(xml)
            c.start_placer("h1")
            c.wait(words, lambda words=words: words in c.log("h1"))
            c.stop_placer("h1")
        # A contradiction: Pacemaker runs but one of them.
        c.constrain(TOGETHER.format(id="c4", vm="b", other="a"))
        c.start_placer("h1")
        c.wait("it is told", lambda: "constraint c3: VMs a and b must be together" in c.log("h1"))
        c.wait("scores, nevertheless", lambda: "h1" in c.scores("a"))

    def test_pacemaker_agrees(self):
        """With scores, constraints and homes at random: who loses its host goes where placed_best()
        says, and no other VM moves."""
        chance = random.Random(5)
        moved = 0
        for _ in range(8):
            c = self.cluster("a", "b", "c", "d", hosts=("h1", "h2", "h3", "h4", "h5"))
            moved += self.compare(c, chance)
        self.assertGreater(moved, 4)

    def compare(self, c, chance):
        homes = dict(zip("abcd", chance.sample(c.hosts, 4)))
        constraints, rules = [], []      # rules: (VM, other) that are apart
        if chance.random() < 0.4:
            homes["d"] = homes["c"]
            constraints.append(TOGETHER.format(id="t", vm="d", other="c"))
        for i, (vm, other) in enumerate((("b", "a"), ("c", "a"), ("c", "b"))):
            if chance.random() < 0.6:
                rules.append((vm, other))
                constraints.append(APART.format(id=f"p{i}", vm=vm, other=other, more=QUIET))
        for vm in "ab":
            if chance.random() < 0.3:
                host = chance.choice([h for h in c.hosts if h != homes[vm]])
                constraints.append(BAN.format(id="n" + vm, vm=vm, host=host))
        c.write_scores({vm: self.scores(chance, c, vm, homes, rules) for vm in c.vms})
        c.simulate()
        self.assertEqual(c.where(), homes)
        c.change(lambda text: text.replace("</constraints>", "".join(constraints) +
                                           "</constraints>"))
        self.assertNotRegex(c.simulate(), "Migrate|Move|Stop|Restart")
        lost = homes[chance.choice("abc")]
        plans = c.place("--host-lost", lost)
        said = {vm: plans[vm]["pacemaker"] for vm in homes if homes[vm] == lost}
        c.power_off(lost)
        where = c.where()
        for vm, home in homes.items():
            expected = said[vm] if vm in said else home
            self.assertEqual(where.get(vm), expected if expected in c.hosts else None,
                             (homes, lost, said, c.scores(vm), constraints))
        return sum(where.get(vm) in c.hosts for vm in said)

    @staticmethod
    def scores(chance, c, vm, homes, rules):
        """As placers publish them."""
        with_it = {v for v in homes if homes[v] == homes[vm]}
        banned = {homes[b if a in with_it else a] for a, b in rules if a in with_it or b in with_it}
        return {host: 1000 if host == homes[vm] else "-INFINITY" if host in banned else
                chance.randrange(0, 99) * 10 + chance.randrange(10) for host in c.hosts}
