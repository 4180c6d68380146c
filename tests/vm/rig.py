# SPDX-License-Identifier: GPL-2.0-or-later
"""What whole-VM tests stand on: one private libvirtd and one agent for all of them, and guests
that obey shell commands. Everything is the product; nothing here is a stand-in for a part of it."""
import atexit
import json
import os
import re
import signal
import subprocess
import sys
import time
import unittest
import xml.etree.ElementTree as ET

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "scripts"))

from harness.lab import domain, hostmem  # noqa: E402
from harness.lab.lab import BUILD, Lab  # noqa: E402
from harness.lab.process import SetupError, run  # noqa: E402

HOST = "emulated:2x4x1@0.5"     # 8 cores on two nodes; quick guests matter here, not their number
# What a QEMU may use beside its guest's memory; the default leaves much room for large hosts.
OVERHEAD_MIB = 512
# How long before its deadline a guest is told which blocks go. Long, so that also the guest of a
# busy machine gives them up itself, and force is seen only where the guest does not obey.
LEAVE_MS = 1000
EBBT_CPU = "/ebb/tests/ebbt-cpu -t 60000"      # with the longest waits that the driver allows
SERIES = ("6.1", "6.12")        # of guest kernels; tests use the first unless they say otherwise
PATIENCE_S = 180                # for what takes moments; machines that run tests may be busy
BOOT_S = 600                    # the same of what takes seconds
LAST_LINES = 30                 # of a guest's console, when a test has failed
SPLAT = re.compile(r"WARNING:|BUG:|Oops|Kernel panic|Call Trace:|rcu: INFO|blocked for more than|"
                   r"general protection|soft lockup|refcount_t|UBSAN|KASAN|"
                   r"bad (pgd|p4d|pud|pmd)|Bad page")


class TestLab(Lab):
    """A lab apart from that of the demo, with an agent that tests may kill.

    Runs whose labs have different names can be beside each other."""
    name = "vmtest"

    def __init__(self):
        logs = os.path.join(TOP, "out", self.name)
        super().__init__(HOST, "fair", logs, {"memory_overhead_mib": OVERHEAD_MIB,
                                             "memory_leave_ms": LEAVE_MS})
        self.dir = self.dir.replace("demo", self.name)
        self.run_dir = os.path.join(self.dir, "ebb")
        self.console_dir = os.path.join(self.dir, "vm")

    def kill_agent(self):
        self.agent.kill()
        self.agent.wait()
        self.agent = None


_lab = None


def lab():
    """The lab of this test run, started by the first that asks."""
    global _lab
    if _lab is None:
        atexit.register(_close)
        for signo in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(signo, lambda *_: sys.exit(1))
        _lab = TestLab().__enter__()
        _lab.accelerator = run([os.path.join(TOP, "scripts", "accel-probe")], timeout=120).strip()
        _lab.start_agent()
    return _lab


def _close():
    global _lab
    if _lab is not None:
        _lab.__exit__(None, None, None)
        _lab = None


def wait_for(what, condition, seconds=PATIENCE_S, every=0.1):
    """The first true answer of condition(); fails with its last answer otherwise."""
    end = time.monotonic() + seconds
    while True:
        answer = condition()
        if answer:
            return answer
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds} s: {what} (last: {answer!r})")
        time.sleep(every)


def as_known_hypervisor(text):
    """Linux 6.12 sets aside CPUs for hot-plug only under a hypervisor that it recognises, and TCG's
    name is not among them: such a guest gets the firmware by which another one is known."""
    return (text.replace("</os>", "<smbios mode='sysinfo'/></os><sysinfo type='smbios'><system>"
                         "<entry name='serial'>VMware-ebb</entry></system></sysinfo>")
            .replace("</model>", "</model><feature policy='disable' name='hypervisor'/>"))


def only_in_full(test):
    """A test that `make check` has no time for, and `make check-full` has."""
    test.is_only_in_full = True
    return test


class Guest:
    """One VM, defined from a domain.Vm. Its console outlives it, for the scan at the end.

    cells: (most CPUs, startup CPUs) of each, and the size of its pool in MiB if it has one."""

    def __init__(self, name, cells=((4, 1), (4, 0)), series=SERIES[0], **more):
        self.lab = lab()
        options = {"shell": "ttyS1", **more.pop("options", {})}
        self.vm = domain.Vm(name, [domain.Cell(most, startup, i, *pool)
                                   for i, (most, startup, *pool) in enumerate(cells)],
                            options=options, **more)
        self.boot = self.lab.boot(self.lab.accelerator)
        guest = os.path.join(BUILD, "guest", series)
        self.boot.kernel = os.path.join(guest, "vmlinuz")
        self.boot.initramfs = os.path.join(guest, "initramfs")
        self.domain = self.boot.prefix + name
        self.is_masked = series != SERIES[0] and self.boot.accelerator == "tcg"
        self.defined = False
        self.background = 0
        self.boots = 0                      # since it was started, as the test wants it

    def define(self, edit=None):
        """edit: changes the XML text before libvirt sees it."""
        path = os.path.join(self.lab.console_dir, self.vm.name + ".xml")
        text = domain.xml(self.boot, self.vm)
        if self.is_masked:
            text = as_known_hypervisor(text)
        with open(path, "w", encoding="utf-8") as f:
            f.write(edit(text) if edit else text)
        self.lab.make_disks(self.boot, self.vm)
        self.lab.virsh("define", path)
        self.defined = True
        return self

    def start(self, driver=True):
        if not self.defined:
            self.define()
        self.lab.virsh("start", self.domain)
        self.boots = 1
        wait_for(f"{self.vm.name} boots", lambda: self.boots_seen() == 1, BOOT_S)
        if driver:
            self.wait_driver()
        return self

    def reset(self):
        """As by its reset button; returns at once."""
        self.boots += 1
        self.lab.virsh("reset", self.domain)

    def wait_reset(self):
        wait_for(f"{self.vm.name} boots again", lambda: self.boots_seen() == self.boots, BOOT_S)
        self.wait_driver()

    def boots_seen(self):
        return self.console().count("ebb-init: ready")

    def wait_driver(self):
        wait_for(f"the driver of {self.vm.name} is seen by the agent",
                 lambda: self.state().get("driver"), BOOT_S)

    def remove(self):
        if self.defined:
            self.lab.virsh("destroy", self.domain, check=False)
            self.lab.virsh("undefine", self.domain, check=False)
            self.defined = False

    def console(self):
        try:
            with open(domain.console_path(self.boot, self.vm), encoding="utf-8",
                      errors="replace") as f:
                return f.read()
        except FileNotFoundError:
            return ""

    def splats(self):
        return [line for line in self.console().splitlines() if SPLAT.search(line)]

    def last_words(self):
        """What can be known of it from outside, for whoever reads of a test that failed."""
        says = "\n".join(self.console().splitlines()[-LAST_LINES:])
        words = [f"---- {self.vm.name}: end of its console", says,
                 "---- as the agent sees it", json.dumps(self.state()),
                 "---- what the agent did last",
                 *(f"{r['ts']:.3f} {r['event']}: {r['reason']}"
                   for r in self.history()[-LAST_LINES:])]
        pid = self.qemu_pid()
        for task in sorted(os.listdir(f"/proc/{pid}/task") if pid else (), key=int):
            with open(f"/proc/{pid}/task/{task}/stat", encoding="utf-8") as f:
                name, _, rest = f.read().partition(" (")[2].rpartition(") ")
            with open(f"/proc/{pid}/task/{task}/cgroup", encoding="utf-8") as f:
                groups = " ".join(line.strip() for line in f if "ebb" in line)
            fields = rest.split()
            words.append(f"thread {task} {name}: {fields[0]}, {fields[11]} + {fields[12]} ticks, "
                         f"{groups}")
        if pid:
            apics = range(sum(c.max_cpus for c in self.vm.cells))
            words += [f"---- {ask}\n" + self.lab.virsh("qemu-monitor-command", self.domain, "--hmp",
                                                       ask, check=False)
                      for ask in ("info cpus", "info registers -a",
                                  *(f"info lapic {v}" for v in apics))]
        return "\n".join(words)

    # ---- inside ----

    def call(self, command, seconds=PATIENCE_S):
        """(exit status, output) of a shell command in the guest."""
        done = subprocess.run([os.path.join(TOP, "scripts", "vm-exec"), "-t", str(seconds),
                               domain.command_path(self.boot, self.vm), f"{command} 2>&1"],
                              capture_output=True, text=True, check=False,
                              stdin=subprocess.DEVNULL)
        if done.returncode in (124, 125):
            raise AssertionError(f"{self.vm.name}: {command}: {done.stderr.strip()}")
        return done.returncode, done.stdout

    def must(self, command, seconds=PATIENCE_S):
        status, out = self.call(command, seconds)
        if status:
            raise AssertionError(f"{self.vm.name}: {command}: exit status {status}: {out}")
        return out

    def test(self, args, seconds=PATIENCE_S):
        """Output lines, parsed, of ebbt-cpu."""
        out = self.must(f"{EBBT_CPU} {args}", seconds)
        return [json.loads(line) for line in out.splitlines() if line.startswith("{")]

    def refused(self, args, seconds=PATIENCE_S):
        """What ebbt-cpu says on the way to its exit status 1."""
        status, out = self.call(f"{EBBT_CPU} {args}", seconds)
        if status != 1:
            raise AssertionError(f"{self.vm.name}: ebbt-cpu {args}: exit status {status}: {out}")
        return out

    def begin(self, command):
        """Starts a command in the guest; returns the file that its output goes to."""
        self.background += 1
        out = f"/tmp/out.{self.background}"
        self.must(f"setsid sh -c 'echo $$ >{out}.pid; exec {command}' >{out} </dev/null & "
                  f"while [ ! -s {out}.pid ]; do sleep 0.05; done")
        return out

    def hold(self, args):
        """ebbt-cpu hold in the background, once it has its CPUs: (output file, first line)."""
        out = self.begin(f"{EBBT_CPU} {args}")
        line = wait_for(f"{args} in {self.vm.name}", lambda: self.call(f"cat {out}")[1].strip())
        if not line.startswith("{"):
            raise AssertionError(f"{self.vm.name}: {args}: {line}")
        return out, json.loads(line.splitlines()[0])

    def end(self, out, signo=9):
        self.must(f"kill -{signo} $(cat {out}.pid)")

    def cpus(self):
        return [c for part in self.test("list") for c in part["cpus"]]

    def lent(self):
        """Numbers of the CPUs that are lent."""
        return [c["cpu"] for c in self.cpus() if c["lent"]]

    def wait_lent(self, count=None, seconds=PATIENCE_S):
        """All CPUs but the startup set are lent, and so many if count says so."""
        def is_over():
            rest = [c for c in self.cpus() if not c["startup"]]
            return all(c["lent"] for c in rest) and count in (None, len(rest))
        wait_for(f"CPUs of {self.vm.name} are lent", is_over, seconds)

    def online(self):
        """CPUs that Linux runs on, e.g. '0-3'."""
        return self.must("cat /sys/devices/system/cpu/online").strip()

    # ---- outside ----

    def state(self):
        """The VM as ebbctl describes it; {} if it does not know it."""
        vms = self.lab.ask("vms")["vms"]
        return next((v for v in vms if v["name"] == self.domain), {})

    def held(self):
        return self.state().get("cpus_held")

    def wait_held(self, count, seconds=PATIENCE_S):
        wait_for(f"{self.vm.name} holds {count}", lambda: self.held() == count, seconds)

    def wait_offer(self, limit, seconds=PATIENCE_S):
        wait_for(f"{self.vm.name} may hold {limit}",
                 lambda: self.state().get("cpus_limit") == limit, seconds)

    def plugged(self):
        """Ids of vCPUs that libvirt says are there."""
        root = ET.fromstring(self.lab.virsh("dumpxml", self.domain))
        return sorted(int(v.get("id")) for v in root.find("vcpus") if v.get("enabled") == "yes")

    def history(self, event=None):
        rows = self.lab.ask("history", self.domain, "--limit", "1000")["history"]
        return [r for r in rows if event is None or r["event"] == event]

    def qemu_pid(self):
        return hostmem.qemu_pid(self.vm.uuid)


class VmTest(unittest.TestCase):
    """A test with its own VMs: removed afterwards, their kernel logs scanned."""

    def setUp(self):
        self.guests = []
        if lab().agent is None:
            lab().start_agent()

    def guest(self, name, **more):
        g = Guest(name, **more)
        self.guests.append(g)
        return g

    def run(self, result=None):
        self.result = result
        return super().run(result)

    def has_failed(self):
        return any(t is self for t, _ in self.result.failures + self.result.errors)

    def tearDown(self):
        if self.has_failed():
            for g in self.guests:
                try:
                    print(g.last_words())
                except (SetupError, OSError) as e:
                    print(f"---- {g.vm.name}: no more of it is known: {e}")
        splats = {g.vm.name: g.splats() for g in self.guests}
        boots = {g.vm.name: g.boots_seen() for g in self.guests if g.boots}
        for g in self.guests:
            g.remove()
        self.assertEqual(boots, {g.vm.name: g.boots for g in self.guests if g.boots},
                         "a guest has reset itself")
        self.assertEqual({k: v for k, v in splats.items() if v}, {}, "kernel log of a guest")
        if lab().agent is None:
            lab().start_agent()
        wait_for("cores come back when the VMs are gone", lambda: not cores_in_use())


def cores_in_use():
    """{core: owner} of cores that belong to a VM now, as the agent sees it."""
    owners = {}
    for v in lab().ask("vms")["vms"]:
        for c in v.get("vcpus", []):
            if c.get("core") is not None and c["state"] not in ("forced", "absent"):
                owners.setdefault(c["core"], []).append(f"{v['name']}/{c['vcpu']}")
    return owners
