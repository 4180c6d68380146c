# SPDX-License-Identifier: GPL-2.0-or-later
"""Memory of whole VMs: limits that move, demands met or not, and what fails around them.

Each test is run once per guest kernel. Where it needs a second VM, that one has the other kernel;
tests that leave the VMs as they were share one boot."""
import json
import os
import re
import signal
import time
import unittest
import xml.etree.ElementTree as ET

from .rig import (LEAVE_MS, OVERHEAD_MIB, PATIENCE_S, SERIES, Guest, VmTest, lab, only_in_full,
                  wait_for)

from harness.lab import domain, hostmem  # isort: skip: rig puts scripts/ on the path

MIB = 1 << 20
POOL_MIB = 1024         # on node 1: all that the emulated host has there for pools
BOOT_MIB = 384
NODE = 1
BLOCK = 2 * MIB
DEADLINE_MS = 4000      # of a demand that nobody meets
PATIENT_DEADLINE_MS = 170000    # of one that is met, if slowly where the machine is busy
SLACK_MIB = 16          # of page tables and the like, where the host's memory is compared
FILES_MIB = 64          # of files that QEMU maps, which are nobody's memory in particular


def on_each_kernel(cls):
    """Makes each method on_X(series, other) of a class the tests test_X_on_<series>.

    Those on the first kernel are the ones that `make check` has the time for."""
    for name in [n for n in vars(cls) if n.startswith("on_")]:
        for series in SERIES:
            def test(self, name=name, series=series):
                (other,) = set(SERIES) - {series}
                getattr(self, name)(series, other)
            if series != SERIES[0]:
                only_in_full(test)
            setattr(cls, f"test_{name[3:]}_on_{series.replace('.', '_')}", test)
    return cls


class MemGuest(Guest):
    """A VM with a pool as large as the host's node 1, and none on node 0."""

    def __init__(self, name, pool_mib=POOL_MIB, **more):
        super().__init__(name, cells=((1, 1), (1, 0, pool_mib)), memory_mib=BOOT_MIB, **more)
        self.meter = None

    def node(self):
        return self.state()["nodes"][NODE]

    def mib(self, what):
        """held, limit, target or unconfirmed of the pool's node."""
        return self.node()[f"mem_{what}_bytes"] / MIB

    def wait_mib(self, what, mib, seconds=PATIENCE_S):
        wait_for(f"{self.vm.name}: {what} {mib} MiB", lambda: self.mib(what) == mib, seconds)

    def rss_mib(self):
        """The host's memory behind the pool."""
        if self.meter is None:
            text = self.lab.virsh("qemu-monitor-command", "--hmp", self.domain, "info ramblock")
            self.meter = hostmem.PoolMeter(self.qemu_pid(), text)
        return self.meter.read() / MIB

    def requested_mib(self):
        """What libvirt's live definition says."""
        root = ET.fromstring(self.lab.virsh("dumpxml", self.domain))
        return int(root.find("devices/memory/target/requested").text) / 1024

    def hold_mem(self, mib, how="hold"):
        """ebbt-memhold in the background, once it has its lease: its output file."""
        out = self.begin(f"/ebb/tests/ebbt-memhold {how} {NODE} {mib * MIB} 2>&1")
        first = wait_for(f"{self.vm.name} holds", lambda: self.said(out))[0]
        if first.get("granted") != mib * MIB:
            raise AssertionError(f"{self.vm.name}: {mib} MiB were asked for, got {first}")
        return out

    def said(self, out):
        """Output lines of a program, parsed; what is no JSON is an error."""
        return [json.loads(line) if line.startswith("{") else {"error": line}
                for line in self.must(f"cat {out}").splitlines()]

    def look(self, out):
        """What ebbt-memhold finds in its lease now."""
        before = len(self.said(out))
        self.must(f"kill -USR1 $(cat {out}.pid)")
        return wait_for("it has looked",
                        lambda: [x for x in self.said(out)[before:] if "held" in x])[-1]

    def end_all(self):
        self.call("killall -9 ebbt-memhold")
        self.wait_mib("held", 0)


class MemTest(VmTest):
    def guest(self, name, **more):
        g = MemGuest(name, **more)
        self.guests.append(g)
        return g

    def assert_intact(self, g, out, held_mib):
        found = g.look(out)
        self.assertEqual(found["held"], held_mib * MIB)
        self.assertEqual(found["wrong_pages"], 0)
        self.assertEqual(found["ghosts"], 0, "blocks that were given back and can be read")
        return found

    def ctl(self, *args):
        lab().ask(*args)

    def set_max(self, g, mib):
        self.ctl("set", g.domain, f"mem.node{NODE}.max={mib}")

    def tearDown(self):
        super().tearDown()
        wait_for("memory comes back when the VMs are gone",
                 lambda: not any(v.get("mem_held_bytes") for v in lab().ask("vms")["vms"]))


@on_each_kernel
class OneGuest(MemTest):
    def on_life(self, series, _):
        g = self.guest(f"one-{series}", series=series,
                       mem_deadline_ms=PATIENT_DEADLINE_MS).start()
        for part in (self.wrong_values_change_nothing, self.limits_follow_the_operator,
                     self.holder_killed, self.guest_rebooted):
            with self.subTest(part.__name__):
                g.end_all()
                g.wait_mib("limit", POOL_MIB)
                part(g)

    def wrong_values_change_nothing(self, g):
        for value in ("-2", "3", str(POOL_MIB + 2), "many", ""):
            with self.subTest(value):
                status = os.spawnvp(os.P_WAIT, lab().ctl()[0], lab().ctl(
                    "set", g.domain, f"mem.node{NODE}.max={value}"))
                self.assertEqual(status, 1)
        self.assertEqual(g.mib("limit"), POOL_MIB)

    def limits_follow_the_operator(self, g):
        out = g.hold_mem(512)
        g.wait_mib("held", 512)
        self.assertGreaterEqual(g.rss_mib(), 512)
        self.set_max(g, 128)
        g.wait_mib("limit", 128)
        g.wait_mib("held", 128)
        wait_for("the host's memory falls", lambda: g.rss_mib() <= 128 + SLACK_MIB)
        wait_for("libvirt knows", lambda: g.requested_mib() == 128)
        self.assert_intact(g, out, 128)
        self.assertFalse(g.history("mem_revoke"))
        self.assertTrue(g.history("mem_demand"))
        self.assertTrue(g.history("mem_release"))
        self.assertTrue(all(r["reason"] for r in g.history("mem_demand")))
        self.set_max(g, POOL_MIB)
        g.wait_mib("limit", POOL_MIB)
        wait_for("libvirt knows", lambda: g.requested_mib() == POOL_MIB)
        g.end(out)
        g.wait_mib("held", 0)
        wait_for("all of it is gone", lambda: g.rss_mib() <= SLACK_MIB)

    def holder_killed(self, g):
        out = g.hold_mem(512)
        g.end(out)
        g.wait_mib("held", 0)
        wait_for("the host's memory falls", lambda: g.rss_mib() <= SLACK_MIB)

    def guest_rebooted(self, g):
        g.hold_mem(512, "deaf")
        g.reset()
        g.wait_mib("held", 0)
        wait_for("the host's memory falls", lambda: g.rss_mib() <= SLACK_MIB)
        g.wait_reset()
        g.wait_mib("limit", POOL_MIB)
        self.assert_intact(g, g.hold_mem(256), 256)


@on_each_kernel
class TwoGuests(MemTest):
    def on_life(self, series, other):
        a = self.guest(f"first-{series}", series=series, mem_deadline_ms=DEADLINE_MS).start()
        b = self.guest(f"second-{other}", series=other, mem_deadline_ms=DEADLINE_MS)
        with self.subTest("revoked_at_the_deadline"):
            self.revoked_at_the_deadline(a, b)
        for part in (self.second_gets_what_the_first_gives,
                     self.agent_killed_while_memory_is_held,
                     self.agent_restarts_during_a_demand, self.qemu_killed):
            with self.subTest(part.__name__):
                for g in (a, b):
                    g.end_all()
                    self.set_max(g, POOL_MIB)
                for g in (a, b):
                    g.wait_mib("limit", POOL_MIB / 2)
                part(a, b)

    def wait_demand_met(self, a, b, held_mib):
        """Meanwhile nothing is promised to b that a still holds."""
        end = time.monotonic() + PATIENCE_S
        while True:
            vms = {v["name"]: v["nodes"][NODE] for v in lab().ask("vms")["vms"]}
            held = vms[a.domain]["mem_held_bytes"] / MIB
            limit = vms[b.domain]["mem_limit_bytes"] / MIB
            self.assertLessEqual(held + limit, POOL_MIB, "promised twice")
            if held == held_mib:
                break
            self.assertLess(time.monotonic(), end, f"{a.vm.name} still holds {held} MiB")
            time.sleep(0.1)
        b.wait_mib("limit", POOL_MIB - held_mib)

    def alone(self, a, b):
        """The first has all there is."""
        self.set_max(b, 0)
        a.wait_mib("limit", POOL_MIB)

    def revoked_at_the_deadline(self, a, b):
        a.wait_mib("limit", POOL_MIB)
        out = a.hold_mem(768, "deaf")
        b.start()
        self.wait_demand_met(a, b, 512)
        wait_for("the host's memory falls", lambda: a.rss_mib() <= 512 + SLACK_MIB)
        found = self.assert_intact(a, out, 512)
        self.assertEqual((found["sigbus"], found["revoked"]), (256 * MIB, 256 * MIB))
        a.wait_mib("unconfirmed", 0)
        (row,) = a.history("mem_revoke")
        self.assertEqual(row["bytes"], 256 * MIB)
        # The guest unplugs what it is told before the deadline; force alone would do as well.
        taken = re.match(r"256 MiB taken, (\d+) of them by force", row["reason"])
        self.assertTrue(taken, row["reason"])
        self.assertLess(int(taken.group(1)), 256, "nothing left before the deadline")
        demanded = a.history("mem_demand")[-1]
        self.assertGreater(row["mono_s"] - demanded["mono_s"],
                           0.9 * (DEADLINE_MS - LEAVE_MS) / 1000)
        other = b.hold_mem(512)
        self.assert_intact(b, other, 512)
        self.assert_intact(a, out, 512)
        a.end(out)
        a.wait_mib("held", 0)

    def second_gets_what_the_first_gives(self, a, b):
        self.alone(a, b)
        out = a.hold_mem(896)
        self.set_max(b, POOL_MIB)
        a.wait_mib("held", POOL_MIB / 2)
        b.wait_mib("limit", POOL_MIB / 2)
        other = b.hold_mem(512)
        self.assert_intact(a, out, 512)
        self.assert_intact(b, other, 512)
        self.assertLessEqual(a.rss_mib() + b.rss_mib(), POOL_MIB + 2 * SLACK_MIB)

    def agent_killed_while_memory_is_held(self, a, b):
        revoked = len(a.history("mem_revoke") + b.history("mem_revoke"))
        outs = {g: g.hold_mem(mib) for g, mib in ((a, 512), (b, 256))}
        lab().kill_agent()
        # Limits stay in force: what was offered may be taken, and no more than that.
        more = b.begin(f"/ebb/tests/ebbt-memhold hold {NODE} {512 * MIB} 2>&1")
        said = wait_for("what is left is had", lambda: b.said(more))
        self.assertEqual(said[0].get("granted"), 256 * MIB, said)
        b.end(more)
        lab().start_agent()
        for g, mib in ((a, 512), (b, 256)):
            g.wait_driver()
            g.wait_mib("held", mib)
            g.wait_mib("limit", 512)
            self.assert_intact(g, outs[g], mib)
        self.assertEqual(len(a.history("mem_revoke") + b.history("mem_revoke")), revoked)

    def agent_restarts_during_a_demand(self, a, b):
        self.alone(a, b)
        out = a.hold_mem(768, "deaf")
        self.set_max(b, POOL_MIB)
        a.wait_mib("limit", 512)
        lab().kill_agent()
        lab().start_agent()
        a.wait_driver()
        b.wait_driver()
        self.wait_demand_met(a, b, 512)
        self.assert_intact(a, out, 512)

    def qemu_killed(self, a, b):
        a.hold_mem(512, "deaf")
        out = b.hold_mem(256)
        os.kill(a.qemu_pid(), signal.SIGKILL)
        wait_for("the agent sees it stopped", lambda: a.state()["state"] == "stopped")
        b.wait_mib("limit", POOL_MIB)
        more = b.hold_mem(768)
        self.assert_intact(b, out, 256)
        self.assert_intact(b, more, 768)


@on_each_kernel
class Engine(MemTest):
    def on_force_with_a_log(self, series, _):
        """What force takes comes back from checkpoint and log, and the engine goes on."""
        g = self.guest(f"forced-{series}", series=series, mem_deadline_ms=DEADLINE_MS,
                       disks_mib=[1024], options={"cold": "vda"}).start()
        g.wait_mib("limit", POOL_MIB)
        g.must("mkdir /cold/log")
        out = g.begin("oltp-server --pool --memory-mib 256 --cold-dir /cold --log-dir /cold/log "
                      "--durability commit --records 100000 --operations 4 --update 0.3 "
                      "--seconds 600")
        wait_for("it runs", lambda: self.line(g, out, "oltp: t="))
        before = g.mib("held")
        self.assertGreater(before, 96)
        # So that it cannot meet the demand.
        g.end(out, signal.SIGSTOP)
        self.set_max(g, 64)
        wait_for("force", lambda: g.history("mem_revoke"))
        g.wait_mib("held", 64)
        g.end(out, signal.SIGCONT)
        told = self.line(g, out, "oltp: t=")
        wait_for("it goes on", lambda: self.line(g, out, "oltp: t=") != told)
        g.end(out, signal.SIGTERM)
        result = json.loads(wait_for("the result", lambda: self.line(g, out, "oltp-result "))
                            [len("oltp-result "):])
        # Those that wanted a record while it was gone were told to come again later.
        self.assertEqual((result["failed_transactions"] - result["failed_lost"],
                          result["lost_updates"], result["records_missing"]), (0, 0, 0))
        self.assertGreater(result["memory"]["revoked_bytes"], 0)
        restores = result["restores"]
        self.assertEqual((restores["failed"], restores["error"]), (0, ""))
        self.assertGreater(restores["made"], 0)
        self.assertGreater(restores["records"], 0)
        g.wait_mib("held", 0)

    def line(self, g, out, start):
        """The last of an engine's output that begins so; None if there is none."""
        found = [w for w in g.call(f"cat {out}")[1].splitlines() if w.startswith(start)]
        return found[-1] if found else None

    def on_moving_records_to_disk_and_back(self, series, _):
        g = self.guest(f"engine-{series}", series=series, mem_deadline_ms=PATIENT_DEADLINE_MS,
                       disks_mib=[512], options={"cold": "vda"}).start()
        g.wait_mib("limit", POOL_MIB)
        out = g.begin("oltp-server --pool --memory-mib 256 --cold-dir /cold --records 120000 "
                      "--operations 4 --update 0.3 --cold-access 0.05 --seconds 600")

        def held_at_most(mib):
            return g.mib("held") <= mib

        wait_for("it runs", lambda: self.line(g, out, "oltp: t="))
        full = g.mib("held")
        self.assertGreater(full, 96)
        self.set_max(g, 64)
        wait_for("the demand is met", lambda: held_at_most(64))
        wait_for("the host's memory falls", lambda: g.rss_mib() <= 64 + SLACK_MIB)
        wait_for("records are on disk", lambda: int(re.search(
            r" cold=(\d+)", self.line(g, out, "oltp: t=")).group(1)) > 0)
        self.set_max(g, POOL_MIB)
        wait_for("it takes memory again", lambda: g.mib("held") > 96)
        g.end(out, signal.SIGTERM)
        result = json.loads(wait_for("the result", lambda: self.line(g, out, "oltp-result "))
                            [len("oltp-result "):])
        self.assertEqual(result["failed_transactions"], 0)
        self.assertEqual(result["lost_updates"], 0)
        memory = result["memory"]
        self.assertEqual((memory["lost_records"], memory["revoked_bytes"]), (0, 0))
        self.assertGreater(memory["evicted_records"], 0)
        self.assertGreater(memory["merged_records"], 0)
        self.assertFalse(g.history("mem_revoke"))
        g.wait_mib("held", 0)


@on_each_kernel
class Liar(MemTest):
    """A guest whose kernel writes to blocks that it gave back."""

    def cap_mib(self, g):
        text = lab().virsh("memtune", g.domain)
        found = re.search(r"hard_limit\s*:\s*(\d+)", text)
        self.assertTrue(found, text)
        return int(found.group(1)) / 1024

    def pool_address(self, g):
        text = lab().virsh("qemu-monitor-command", g.domain,
                           '{"execute": "query-memory-devices"}')
        devices = [d["data"] for d in json.loads(text)["return"]]
        return next(d["memaddr"] for d in devices if d.get("id") == domain.pool_id(NODE))

    def resident_mib(self, pid):
        """All of a process, None once it is gone."""
        try:
            with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as f:
                return int(re.search(r"^Rss:\s+(\d+) kB", f.read(), re.M).group(1)) / 1024
        except (OSError, AttributeError):
            return None

    def has_poked(self, g, out):
        """Also False of a guest that is gone."""
        try:
            return "poked" in g.call(f"cat {out}")[1]
        except AssertionError:
            return False

    def on_gaining_nothing_and_harming_only_itself(self, series, other):
        good = self.guest(f"good-{other}", series=other).start()
        liar = self.guest(f"liar-{series}", series=series)
        liar.boot.cmdline += " iomem=relaxed"
        liar.start()
        good.wait_mib("limit", 512)
        liar.wait_mib("limit", 512)
        out = good.hold_mem(512)
        self.set_max(liar, 0)
        liar.wait_mib("limit", 0)
        good.wait_mib("limit", POOL_MIB)
        pid, before = liar.qemu_pid(), self.resident_mib(liar.qemu_pid())
        wait_for("the limit of its memory cgroup falls",
                 lambda: self.cap_mib(liar) == BOOT_MIB + OVERHEAD_MIB)
        cap = self.cap_mib(liar)
        self.assertLess(cap, before + POOL_MIB, "a limit that would stop nobody")
        poke = liar.begin(f"/ebb/tests/ebbt-memhold poke {self.pool_address(liar)} "
                          f"{POOL_MIB * MIB} 2>&1")
        most, start, has_poked = before, time.monotonic(), False
        look_at = start
        while not has_poked and time.monotonic() < start + PATIENCE_S:
            now = self.resident_mib(pid)
            if now is None:
                break
            most = max(most, now)
            if time.monotonic() >= look_at:
                has_poked = self.has_poked(liar, poke)
                look_at = time.monotonic() + 1
            time.sleep(0.05)
        # Pages of files that it maps are resident, but not its own.
        self.assertLessEqual(most, cap + FILES_MIB)
        # It may also come to its end a moment after it has said so.
        is_gone = self.resident_mib(pid) is None
        self.assertTrue(has_poked or is_gone, "neither done nor stopped")
        if is_gone:
            wait_for("the agent sees it stopped", lambda: liar.state()["state"] == "stopped")
        # The other VM has all that it was promised.
        self.assert_intact(good, out, 512)
        self.assert_intact(good, good.hold_mem(512), 512)
        self.assertFalse(good.history("mem_revoke"))


if __name__ == "__main__":
    unittest.main()
