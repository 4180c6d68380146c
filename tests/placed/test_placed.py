# SPDX-License-Identifier: GPL-2.0-or-later
"""What ebb-placed publishes, and what Pacemaker does with it."""
import unittest

import rig


class Placed(unittest.TestCase):
    def cluster(self, *vms):
        cluster = rig.Cluster(vms)
        self.addCleanup(cluster.close)
        return cluster

    def test_vms_are_placed_and_stay(self):
        c = self.cluster("a", "b", "c")
        c.start_placers()
        where = c.settle()
        self.assertEqual(set(where), {"a", "b", "c"})
        c.wait("floors are told", lambda: c.tool("cibadmin", "-Q").count('name="ebb-cpu"') == 6)
        self.assertNotRegex(c.simulate(), "Migrate|Stop|Restart")
        self.assertEqual(c.where(), where)

    def test_a_large_disk_is_dear_to_move(self):
        c = self.cluster("a", "b")
        c.vms["a"]["disk"] = 200 << 10
        c.start_placers()
        c.settle()
        c.wait("both have a cost", lambda: [c.stickiness(vm) for vm in "ab"] == ["200", "100"])

    def test_recommended_move_is_a_live_migration_to_the_best_host(self):
        c = self.cluster("a")
        c.start_placers()
        home = c.settle()["a"]
        # One of the others has less room than a wants in addition.
        busy, free = [h for h in c.hosts if h != home]
        c.ebbds[busy].vms["x"] = {"cpu": 3900, "floor_cpus": 0}
        c.wait("the busy host says so", lambda: c.scores("a")[busy] < 10)
        self.assertGreaterEqual(c.scores("a")[free], 990)
        c.vms["a"]["move"] = "relieves node 0"
        c.wait("the home's score falls", lambda: c.scores("a")[home] == 0)
        self.assertRegex(c.simulate(), rf"(Migrate|Move)\s+a\s+\( {home} -> {free} \)")
        self.assertEqual(c.where(), {"a": free})
        c.vms["a"].pop("move")
        c.wait("the new home holds it", lambda: c.scores("a")[free] == 1000 and
               "has left this host for " + free in c.log(home))
        self.assertNotRegex(c.simulate(), "Migrate|Move|Stop")

    def test_no_better_host_no_move(self):
        c = self.cluster("a")
        c.start_placers()
        home = c.settle()["a"]
        for host in c.hosts:
            if host != home:
                c.ebbds[host].vms["x" + host] = {"cpu": 3900, "floor_cpus": 0}
        c.wait("the others are full", lambda: [s < 10 for s in sorted(
            c.scores("a").values())] == [True, True, False])
        c.vms["a"]["move"] = "relieves node 0"
        c.wait("it says why", lambda: "should move, but stays" in c.log(home))
        self.assertEqual(c.scores("a")[home], 1000)
        self.assertNotRegex(c.simulate(), "Migrate|Move|Stop")

    def test_runner_up_stands_when_a_host_dies_without_any_placer(self):
        c = self.cluster("a")
        c.start_placers()
        home = c.settle()["a"]
        busy, free = [h for h in c.hosts if h != home]
        c.ebbds[busy].vms["x"] = {"cpu": 3900, "floor_cpus": 0}
        c.wait("the busy host says so", lambda: c.scores("a")[busy] < 10)
        for host in c.hosts:
            c.stop_placer(host)
        c.power_off(home)
        self.assertEqual(c.where(), {"a": free})

    def test_host_without_libvirtd_gets_no_vm(self):
        c = self.cluster("a")
        c.start_placers()
        home = c.settle()["a"]
        deaf, good = [h for h in c.hosts if h != home]
        c.ebbds[deaf].libvirt = "down"
        c.wait("it says that it can take none", lambda: c.scores("a")[deaf] == rig.NEVER)
        c.ebbds[good].answers = False
        c.wait("nor the other", lambda: c.scores("a")[good] == rig.NEVER)
        c.vms["a"]["move"] = "relieves node 0"
        c.wait("it says why", lambda: "no other host can take it" in c.log(home))
        # Its own libvirtd goes: a VM that runs there must not be tried elsewhere.
        c.ebbds[home].libvirt = "down"
        c.ebbds[good].answers = True
        c.wait("the other is back", lambda: c.scores("a")[good] >= 990)
        self.assertEqual(c.scores("a")[home], 1000)
        self.assertNotRegex(c.simulate(), "Migrate|Move|Stop")

    def test_ebbd_is_started_again(self):
        c = self.cluster("a")
        c.start_placers()
        other = next(h for h in c.hosts if h != c.settle()["a"])
        for _ in range(3):
            seen = len(c.ebbds[other].quorum)
            c.ebbds[other].start_again()
            c.wait("some cycles", lambda n=seen: len(c.ebbds[other].quorum) > n + 1)
        self.assertNotIn("ebbd does not answer", c.log(other))
        self.assertNotIn("value=-1000000", c.log(other))

    def test_many_actions_do_not_keep_ebbd_waiting(self):
        """The word on the quorum ends if it is not said again, however much there is to do."""
        c = self.cluster(*(f"vm{i}" for i in range(12)))
        c.slow_s = 0.5
        c.start_placer("h1")
        c.wait("all scores", lambda: all("h1" in c.scores(vm) for vm in c.vms))
        self.assertGreater(len(c.ebbds["h1"].quorum), 2)

    def test_quorum_is_told_whatever_the_cluster_looks_like(self):
        c = rig.Cluster(["a"], [f"h{i:02}" for i in range(65)])
        self.addCleanup(c.close)
        c.start_placer("h00")
        c.wait("it says why it can not place", lambda: "more than 64 hosts" in c.log("h00"))
        c.wait("ebbd is told", lambda: c.ebbds["h00"].quorum)

    def test_quorum_is_told_without_facts(self):
        c = self.cluster("a")
        c.flood = "yes"
        c.start_placer("h1")
        c.wait("it says that it has no facts", lambda: "facts of other hosts can not be read" in
               c.log("h1"))
        c.wait("ebbd is told", lambda: c.ebbds["h1"].quorum)

    def test_without_quorum_nothing_is_published(self):
        c = self.cluster("a")
        c.start_placers()
        home = c.settle()["a"]
        other = next(h for h in c.hosts if h != home)
        c.set_quorum(False)
        c.wait("ebbd is told", lambda: c.ebbds[other].quorum[-1:] == [False] and
               c.ebbds[home].quorum[-1:] == [False])
        before = c.scores("a")
        c.ebbds[other].vms["x"] = {"cpu": 3900, "floor_cpus": 0}
        seen = len(c.ebbds[other].quorum)
        c.wait("some cycles", lambda: len(c.ebbds[other].quorum) > seen + 2)
        self.assertEqual(c.scores("a"), before)
        c.set_quorum(True)
        c.wait("ebbd is told again", lambda: c.ebbds[other].quorum[-1])
        c.wait("news are published", lambda: c.scores("a")[other] < 10)

    def test_floors_are_never_oversold(self):
        c = self.cluster("a", "b", "c", "d")
        for vm in c.vms.values():
            vm.update(floor_cpus=3, cpu=100)
        c.start_placers()
        c.wait("scores", lambda: all(len(c.scores(vm)) == 3 for vm in c.vms))
        for vm in c.vms:
            c.tool("crm_resource", "-r", vm, "--utilization", "-p", "ebb-cpu", "-v", "3000")
        c.wait("capacities", lambda: c.tool("cibadmin", "-Q").count('value="4000"') == 3)
        c.simulate()
        where = c.where()
        # Three hosts of four CPUs have room for three VMs of three.
        self.assertEqual(len(where), 3)
        self.assertEqual(len(set(where.values())), 3)

    def test_lies_are_told_and_corrected(self):
        c = self.cluster("a")
        c.start_placers()
        home = c.settle()["a"]
        other = next(h for h in c.hosts if h != home)
        c.stop_placer(other)
        c.tool("crm_attribute", "-N", other, "-l", "reboot", "-n", "ebb-score-ghost", "-v", "5")
        c.tool("crm_attribute", "-N", other, "-l", "reboot", "-n", "ebb-score-a", "-v", "9999999")
        c.wait("the home sees both", lambda: "about a VM that does not exist" in c.log(home) and
               "is no number from 0 to 1000" in c.log(home))
        c.start_placer(other)
        c.wait("both are corrected", lambda: 990 <= c.scores("a")[other] < 1000 and
               not c.scores("ghost"))

    def test_two_hosts_claim_a_vm(self):
        """A split brain that fencing did not end, or an agent that lies: the host counts on which
        Pacemaker has it, and nothing is decided."""
        c = self.cluster("a")
        c.start_placers()
        home = c.settle()["a"]
        liar = next(h for h in c.hosts if h != home)
        c.wait("its floor is told", lambda: 'name="ebb-cpu" value="1000"' in
               c.tool("cibadmin", "-Q"))
        before = c.scores("a")
        c.ebbds[liar].vms["a"] = {"cpu": 4000, "floor_cpus": 4, "move": "relieves node 0",
                                  "vm_class": "liar", "disk": 9 << 20}
        c.wait("all say so", lambda: all("both say that it runs there" in c.log(h)
                                         for h in c.hosts))
        seen = len(c.ebbds[home].quorum)
        c.wait("some cycles", lambda: len(c.ebbds[home].quorum) > seen + 3)
        self.assertEqual(c.scores("a"), before)
        self.assertNotIn('name="ebb-cpu" value="4000"',
                         c.tool("cibadmin", "-Q", "-o", "resources"))
        self.assertEqual(c.place()["a"]["class"], "spot")
        self.assertNotRegex(c.simulate(), "Migrate|Move|Stop|Restart")

    def test_vms_of_a_dead_host_do_not_all_go_to_one(self):
        c = self.cluster("a", "b", "c")
        for vm in c.vms.values():
            vm.update(cpu=1900)
        c.start_placers()
        c.wait("scores", lambda: all(len(c.scores(vm)) == 3 for vm in c.vms))
        # The first two are on h1; two of this size fit on a host, three do not.
        for vm in ("a", "b"):
            c.tool("crm_resource", "-r", vm, "--move", "--node", "h1")
        c.tool("crm_resource", "-r", "c", "--move", "--node", "h2")
        c.simulate()
        for vm in c.vms:
            c.tool("crm_resource", "-r", vm, "--clear")
        c.ebbds["h3"].vms["x"] = {"cpu": 1900, "floor_cpus": 0}
        self.assertEqual(c.where(), {"a": "h1", "b": "h1", "c": "h2"})
        c.wait("h1 has them", lambda: [c.scores(vm).get("h1") for vm in "ab"] == [1000, 1000])
        c.wait("they part", lambda: sorted(
            max(("h2", "h3"), key=c.scores(vm).get) for vm in "ab") == ["h2", "h3"])
        for host in c.hosts:
            c.stop_placer(host)
        c.power_off("h1")
        self.assertEqual(sorted(c.where().values()), ["h2", "h2", "h3"])
