# SPDX-License-Identifier: GPL-2.0-or-later
"""Tiny VMs on shared cores, under the agent and a private libvirt.

All that a VM runs is its firmware, which computes or does nothing. Where nothing else is said, the
host is this machine, and the last core of its node 0 is the shared one.
"""
import atexit
import os
import signal
import sys
import time
import unittest
import uuid

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "scripts"))

from harness.lab.lab import BUILD, Lab  # noqa: E402
from harness.lab.process import SetupError, run  # noqa: E402,F401

PATIENCE_S = 300        # machines that run tests may be busy
WINDOW_S = 1            # of the agent
NEVER_S = 3600
ROM_BYTES = 65536
COMPUTES = b"\xeb\xfe"          # jmp to itself
DOES_NOTHING = b"\xfa\xf4\xeb\xfd"      # cli; hlt; jmp to hlt

DOMAIN = """<domain type='qemu'>
  <name>{name}</name><uuid>{uuid}</uuid>
  <metadata><ebb:sla xmlns:ebb='urn:ebb:sla:1'><ebb:cpu shared='yes' {sla}>
    <ebb:node id='0' startup='1' max='1' host='0'/></ebb:cpu></ebb:sla></metadata>
  <memory unit='MiB'>32</memory><vcpu>1</vcpu>
  <cputune>{tune}</cputune>
  <os><type arch='x86_64' machine='q35'>hvm</type>
    <loader readonly='yes' type='rom'>{rom}</loader></os>
  <features><acpi/></features>
  <on_crash>destroy</on_crash>
  <devices>
    <emulator>{emulator}</emulator>
    <controller type='usb' model='none'/><memballoon model='none'/>
  </devices>
</domain>
"""


def wait_for(what, condition, seconds=PATIENCE_S):
    """The first true answer of condition(); fails with its last answer otherwise."""
    end = time.monotonic() + seconds
    while True:
        answer = condition()
        if answer:
            return answer
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds} s: {what} (last: {answer!r})")
        time.sleep(0.1)


def read(*path):
    with open(os.path.join(*path), encoding="ascii") as f:
        return f.read()


class TinyLab(Lab):
    """name: of its folders. cgroups: "libvirt" uses them, or there are "none", or "auto"."""

    def __init__(self, name, cgroups, host="auto", options=None):
        super().__init__(host, "fair", os.path.join(TOP, "out", name),
                         {"shared_cores": "1", "hot_window_s": WINDOW_S, **(options or {})})
        self.cgroups = cgroups
        self.dir = self.dir.replace("demo", name)
        self.run_dir = os.path.join(self.dir, "ebb")
        self.console_dir = os.path.join(self.dir, "vm")

    def __enter__(self):
        os.environ["EBB_LAB_CGROUPS"] = self.cgroups
        return super().__enter__()

    def agent_log(self):
        with open(os.path.join(self.log_dir, "ebbd.log"), encoding="utf-8") as f:
            return f.read()


def vcpu_thread(pid):
    """The thread of vCPU 0 of a QEMU."""
    for tid in os.listdir(f"/proc/{pid}/task"):
        if read(f"/proc/{pid}/task/{tid}/comm").startswith("CPU 0/"):
            return int(tid)
    raise AssertionError(f"QEMU {pid} has no thread for vCPU 0")


def vcpu_group(pid):
    """The cgroup of the thread of vCPU 0 that has the CPU controller: (folder, is version 2)."""
    lines = [line.split(":", 2) for line in
             read(f"/proc/{pid}/task/{vcpu_thread(pid)}/cgroup").splitlines()]
    with open("/proc/self/mounts", encoding="utf-8") as f:
        mounts = [line.split()[1:4] for line in f]
    for _, names, path in lines:
        if "cpu" in names.split(","):
            return next(m[0] for m in mounts if m[1] == "cgroup" and
                        "cpu" in m[2].split(",")) + path, False
    path = next(path for _, names, path in lines if not names)
    return next(m[0] for m in mounts if m[1] == "cgroup2") + path, True


class Vm:
    """A VM of one vCPU. sla: attributes of <ebb:cpu>; tune: content of <cputune>."""

    def __init__(self, lab, letter, tune="", sla="", code=COMPUTES):
        self.lab, self.name = lab, lab.prefix + letter
        rom = os.path.join(lab.console_dir, letter + ".rom")
        with open(rom, "wb") as f:
            # A processor begins 16 bytes below the end.
            f.write(b"\x90" * (ROM_BYTES - 16) + code.ljust(16, b"\x90"))
        path = os.path.join(lab.console_dir, letter + ".xml")
        with open(path, "w", encoding="utf-8") as f:
            f.write(DOMAIN.format(name=self.name, uuid=uuid.uuid4(), tune=tune, sla=sla, rom=rom,
                                  emulator=os.path.join(BUILD, "qemu", "bin",
                                                        "qemu-system-x86_64-ebb")))
        lab.virsh("define", path)

    def start(self):
        self.lab.virsh("start", self.name)
        return self

    def destroy(self):
        self.lab.virsh("destroy", self.name)

    def remove(self):
        self.lab.virsh("destroy", self.name, check=False)
        self.lab.virsh("undefine", self.name, check=False)

    def pid(self):
        return int(read(self.lab.dir, "run", "qemu", self.name + ".pid"))

    def sched(self):
        """What libvirt says of the running VM: {parameter: number}."""
        lines = self.lab.virsh("schedinfo", "--live", self.name).splitlines()
        return {k.strip(): int(v) for k, v in (line.split(":") for line in lines)
                if k.strip() != "Scheduler"}

    def state(self):
        return next((v for v in self.lab.ask("vms")["vms"] if v["name"] == self.name), {})

    def set(self, *words):
        run(self.lab.ctl("set", self.name, *words))

    def explain(self):
        return run(self.lab.ctl("explain", self.name))

    def history(self, event):
        rows = self.lab.ask("history", self.name, "--limit", "1000")["history"]
        return [r for r in rows if r["event"] == event]


class TinyTest(unittest.TestCase):
    """Tests on one lab, which is made for each class; the agent ends with each test."""
    name, cgroups = "tiny", "libvirt"
    vm_class = Vm
    lab = None

    @classmethod
    def setUpClass(cls):
        cls.lab = TinyLab(cls.name, cls.cgroups).__enter__()
        atexit.register(cls.lab.__exit__)

    @classmethod
    def tearDownClass(cls):
        atexit.unregister(cls.lab.__exit__)
        cls.lab.__exit__()

    def setUp(self):
        self.vms = []
        self.lab.agent_options["hot_window_s"] = WINDOW_S
        self.lab.agent_options["shared_cores"] = "1"

    def tearDown(self):
        for vm in self.vms:
            vm.remove()
        self.lab.stop_agent()

    def vm(self, letter, tune="", **options):
        vm = self.vm_class(self.lab, letter, tune, **options)
        self.vms.append(vm)
        return vm


def main(module, names):
    if any(n.startswith("-") for n in names):
        sys.exit(module.__doc__)
    if os.geteuid() != 0:
        print("the lab needs root", file=sys.stderr)
        return 1
    # The one exception that unittest does not take for a failed test.
    for signo in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(signo, signal.default_int_handler)
    load = unittest.defaultTestLoader
    suite = load.loadTestsFromNames(names, module) if names else load.loadTestsFromModule(module)
    result = unittest.TextTestRunner(verbosity=2, stream=sys.stdout).run(suite)
    # One that is skipped proves nothing; one that could not begin has not run.
    bad = {t.id() for t, _ in result.failures + result.errors + result.skipped}
    for name in sorted(bad):
        print(f"[  FAILED  ] {name}")
    print(f"{max(result.testsRun - len(bad), 0)} passed, {len(bad)} failed")
    return 0 if result.testsRun and not bad else 1
