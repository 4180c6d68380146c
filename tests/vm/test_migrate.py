# SPDX-License-Identifier: GPL-2.0-or-later
"""A VM moves between two hosts on this machine, each with its own libvirtd and agent, with CPUs
that it holds and has lent, memory that it leases, and demands that are open."""
import os
import re
import subprocess
import time
import unittest

from . import rig
from .rig import PATIENCE_S, Guest, VmTest, lab, wait_for
from .test_mem import MIB, MemGuest

POOL_MIB = 128
HELD_MIB = 96
LEFT_MIB = 64           # that it may keep, when it is asked for the rest
DEADLINE_S = 300        # of open demands: longer than the test
SETTLED_S = 60
SLOW_MIB_S = 1          # a migration that does not end while a test looks at it


class OtherLab(rig.TestLab):
    """The second host."""
    name = "vmtest-other"


class MovingGuest(MemGuest):
    """A VM that is in one lab or the other; what is asked of it goes to where it is."""

    def __init__(self, name, there):
        Guest.__init__(self, name, cells=((4, 1), (1, 0, POOL_MIB)), options={"monitor": 0})
        self.meter, self.has_moved = None, False
        self.homes = {self.lab: (self.lab, self.boot, self.domain)}
        boot = there.boot(there.accelerator)
        boot.kernel, boot.initramfs = self.boot.kernel, self.boot.initramfs
        self.homes[there] = (there, boot, boot.prefix + name)

    def is_at(self, where):
        """From now on it is there."""
        self.lab, self.boot, self.domain = self.homes[where]

    def state_at(self, where):
        """As the agent there describes it; {} if it does not know it."""
        return next((v for v in where.ask("vms")["vms"] if v["uuid"] == self.vm.uuid), {})

    def migrate(self, where, *options):
        """Starts to move it there: the process."""
        here, boot, name = self.homes[self.lab]
        there, other_boot, other_name = self.homes[where]
        # libvirt hears of a new limit a little later, and wants the same in the XML.
        wait_for("libvirt knows the size", lambda: self.requested_mib() == LEFT_MIB)
        text = here.virsh("dumpxml", "--migratable", name)
        for old, new in ((boot.link_dir, other_boot.link_dir),
                         (boot.console_dir, other_boot.console_dir)):
            text = text.replace(old, new)
        # With a limit libvirt limits locked memory, too, which a sandbox may not let it do.
        text = re.sub(r"<memtune>.*?</memtune>", "", text, flags=re.S)
        path = os.path.join(there.console_dir, f"{self.vm.name}-comes.xml")
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        socket = os.path.join(there.dir, "move.sock")
        return subprocess.Popen(
            ["virsh", "-q", "-c", here.uri, "migrate", "--live", "--dname", other_name,
             "--xml", path, "--migrateuri", f"unix://{socket}", *options, name, there.uri],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def move(self, where, *options):
        process = self.migrate(where, *options)
        said, _ = process.communicate(timeout=PATIENCE_S)
        if process.returncode:
            raise AssertionError(f"{self.vm.name} does not move: {said}")
        self.is_at(where)
        self.has_moved = True


class Migrate(VmTest):
    def setUp(self):
        super().setUp()
        self.other = OtherLab()
        self.other.__enter__()
        self.addCleanup(self.other.__exit__, None, None, None)
        self.other.accelerator = lab().accelerator
        self.other.start_agent()

    def tearDown(self):
        for g in self.guests:
            g.lab.virsh("destroy", g.domain, check=False)
            g.is_at(lab())
            # Its console begins anew where it comes to; it has booted before that.
            if g.has_moved:
                self.assertEqual(g.boots_seen(), 0, "the guest has reset itself")
                g.boots = 0
        super().tearDown()

    def used_at(self, where):
        """(cores, MiB that pools hold or may take) of all VMs there."""
        nodes = where.ask("host")["host"]["nodes"]
        return (sum(n["used"] for n in nodes),
                sum(n["mem_promised_bytes"] for n in nodes) // MIB)

    def charge_of(self, g):
        """(seconds, core-seconds) for which it was charged in its life, as the agent there says."""
        account = g.state()["account"]
        return account["age_s"], account["reserved_core_s"] + account["spot_core_s"]

    def assert_all_there(self, g):
        """It has what it had: three CPUs, one of which it was asked for, and a lent one."""
        want = ("running", True, 3, 1, 2, HELD_MIB, LEFT_MIB)

        def found():
            s = g.state()
            return s and (s["state"], s["driver"], s["cpus_held"], s["cpus_lent"],
                          s["nodes"][0]["limit"], s["mem_held_bytes"] // MIB,
                          s["mem_limit_bytes"] // MIB)
        try:
            wait_for("the agent has taken it over", lambda: found() == want, SETTLED_S)
        except AssertionError:
            self.assertEqual(found(), want)
        self.assertEqual(self.used_at(g.lab)[0], 3)
        cpus, memory = g.state()["nodes"]
        self.assertGreater(cpus["deadline_ms"], 1000)
        self.assertGreater(memory["mem_deadline_ms"], 1000)

    def wait_coming(self, g, process):
        def is_coming():
            if process.poll() is not None:
                raise AssertionError(f"the migration has ended: {process.stdout.read()}")
            return g.state_at(self.other).get("state") == "incoming"
        wait_for("it is on its way", is_coming, SETTLED_S)

    def assert_nothing_at(self, where):
        wait_for("nothing of it is counted there", lambda: self.used_at(where) == (0, 0))

    def prepare(self, g):
        """Three CPUs held, a lent one, a lease, and open demands for CPUs and memory."""
        self.assertEqual(g.test("loop 1 3 0 lend")[0]["granted"], 3)
        self.cpus, answer = g.hold("hold 2 0")
        self.assertEqual(answer["granted"], 2)
        self.lease = g.hold_mem(HELD_MIB, "deaf")
        lab().ask("set", g.domain, f"deadline-ms={DEADLINE_S * 1000}", "max.0=2",
                  f"mem.deadline-ms={DEADLINE_S * 1000}", f"mem.node1.max={LEFT_MIB}")
        self.assert_all_there(g)

    def test_there_and_back(self):
        g = MovingGuest("mover", self.other)
        self.guests.append(g)
        g.start()
        self.prepare(g)
        for part in (self.fails, self.agents_die, self.ledger_goes_on, self.comes_back_paused,
                     self.demands_are_met):
            print(part.__name__)
            part(g)

    def fails(self, g):
        """The new host reserves what is the VM's at least, and gives it back."""
        process = g.migrate(self.other, "--bandwidth", str(SLOW_MIB_S))
        self.wait_coming(g, process)
        self.assertEqual(self.used_at(self.other)[0], 1)
        self.assert_all_there(g)
        g.lab.virsh("domjobabort", g.domain)
        self.assertNotEqual(process.wait(PATIENCE_S), 0)
        self.assert_nothing_at(self.other)
        self.assertEqual(g.state_at(self.other), {})
        self.assert_all_there(g)

    def agents_die(self, g):
        """Both agents are killed while it moves; nothing is lost, nothing counts twice."""
        source = g.lab
        before = self.charge_of(g)
        process = g.migrate(self.other, "--bandwidth", str(SLOW_MIB_S))
        self.wait_coming(g, process)
        for agent in (source, self.other):
            agent.kill_agent()
            agent.start_agent()
        self.wait_coming(g, process)
        self.assertEqual(self.used_at(self.other)[0], 1)
        self.assert_all_there(g)
        g.lab.virsh("migrate-setspeed", g.domain, "1000")
        self.assertEqual(process.wait(PATIENCE_S), 0, process.stdout.read())
        g.is_at(self.other)
        self.assert_all_there(g)
        self.assert_nothing_at(source)
        self.assertGreaterEqual(self.charge_of(g), before)

    def ledger_goes_on(self, g):
        """An agent that is restarted adds nothing that it has counted already."""
        began, before = time.monotonic(), self.charge_of(g)
        g.lab.kill_agent()
        g.lab.start_agent()
        self.assert_all_there(g)
        wait_for("it is charged on", lambda: self.charge_of(g) > before)
        self.assertLess(self.charge_of(g)[0], before[0] + time.monotonic() - began + 1)

    def comes_back_paused(self, g):
        """Its device says what it holds also while it stays paused."""
        g.lab.virsh("suspend", g.domain)
        g.move(lab())
        self.assert_all_there(g)
        self.assertEqual(g.lab.virsh("domstate", g.domain).strip(), "paused")
        self.assert_nothing_at(self.other)
        g.lab.virsh("resume", g.domain)
        self.assert_all_there(g)

    def demands_are_met(self, g):
        """The guest knows of all this, and the lease has what was written to it."""
        found = g.look(self.lease)
        self.assertEqual((found["held"], found["wrong_pages"]), (HELD_MIB * MIB, 0))
        g.end(self.cpus)
        g.wait_held(1)
        g.end_all()
        wait_for("all is given back", lambda: g.state()["mem_held_bytes"] == 0)


if __name__ == "__main__":
    unittest.main()
