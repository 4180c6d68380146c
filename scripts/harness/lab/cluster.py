# SPDX-License-Identifier: GPL-2.0-or-later
"""Three hosts with a Pacemaker on this machine (scripts/cluster-lab), with or without agents, and
their VMs, which are resources of Pacemaker's."""
import json
import os
import re
import shutil
import subprocess
import time
import xml.etree.ElementTree as ET

from . import domain, netns
from .lab import BUILD, SERIES, TOP, kernel_options
from .process import SetupError, run

HOSTS = ("h1", "h2", "h3")
# On each host; there are no more than two hosts' worth of VMs when one is lost.
LINK_DIR, COMMAND_DIR, BRIDGE = "/run/ebb/link", "/run/vm", "ebb0"
UP_S, CLUSTER_S, EXEC_S = 60, 90, 40
# How far a resource may go, before Pacemaker counts it as failed.
TIMEOUTS_S = {"start": 60, "stop": 60, "migrate_to": 120, "migrate_from": 60}
MONITOR_S = 10

# Runs a program on each host, again when it has ended. $1: this host.
PROGRAM = """#!/bin/bash
until {ready}; do sleep 0.1; done
while :; do
	{command} &
	echo $! >/run/ebb/{name}.pid
	wait $!
	sleep 0.5
done
"""
AGENT, PLACER = "ebbd", "ebb-placed"


def score_name(vm_name):
    """The node attribute that says how good a host is for a VM."""
    return f"ebb-score-{vm_name}"


class Cluster:
    """The hosts. Use as a context: leaving it ends everything on them."""

    def __init__(self, folder=None, log_dir=None):
        self.dir = folder or os.path.join(BUILD, "cluster")
        self.log_dir = log_dir
        self.shared = os.path.join(self.dir, "shared")
        self.programs = {}      # name: text of a script that runs on each host, with its name
        self.traces = {}        # class of VMs: lines, for placers

    def __enter__(self):
        self._lab("down")
        shutil.rmtree(self.shared, ignore_errors=True)
        shutil.rmtree(os.path.join(self.dir, "boot.d"), ignore_errors=True)
        os.makedirs(os.path.join(self.shared, "traces"))
        for name, lines in self.traces.items():
            with open(os.path.join(self.shared, "traces", name + ".csv"), "w",
                      encoding="ascii") as f:
                f.writelines(line + "\n" for line in lines)
        os.makedirs(os.path.join(self.dir, "boot.d"))
        for name, text in self.programs.items():
            path = os.path.join(self.dir, "boot.d", name)
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
            os.chmod(path, 0o755)
        try:
            self._lab("up", "--owner", str(os.getpid()))
            self._lab("wait", str(CLUSTER_S))
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self._keep_logs()
        self._lab("down")

    def _command(self, *args):
        return [os.path.join(TOP, "scripts", "cluster-lab"), "-d", self.dir, *args]

    def _lab(self, *args):
        return run(self._command(*args), timeout=UP_S + CLUSTER_S)

    def _keep_logs(self):
        if not self.log_dir:
            return
        os.makedirs(self.log_dir, exist_ok=True)
        for host in HOSTS:
            folder = os.path.join(self.dir, host, "log")
            if os.path.isdir(folder):
                shutil.copytree(folder, os.path.join(self.log_dir, host), dirs_exist_ok=True,
                                ignore=lambda path, names: [
                                    n for n in names if not os.path.isdir(f"{path}/{n}")
                                    and not os.path.isfile(f"{path}/{n}")])
        for name in os.listdir(self.shared) if os.path.isdir(self.shared) else ():
            if name.endswith((".console", ".xml")):
                shutil.copy(os.path.join(self.shared, name), self.log_dir)

    # ---- hosts ----

    def on(self, host, *words, check=True, timeout=EXEC_S):
        """What a command on a host says."""
        return run(self._command("exec", host, *words), check=check, timeout=timeout)

    def in_network(self):
        """Words before a command that is to run in the network in which the VMs are."""
        return self._command("net")

    def connect(self, address):
        """A TCP connection from that network."""
        with open(os.path.join(self.dir, "first"), encoding="ascii") as f:
            return netns.connect(f"/proc/{f.read().split()[0]}/ns/net", address)

    def power(self, action, host):
        self._lab("power", action, host)

    def crash(self, host):
        """Its power fails, and comes back after some seconds."""
        self.power("reboot", host)

    # ---- agents ----

    def cgroups_of(self, host):
        return self._lab("cgroup-prefix").strip() + f"{host}-"

    def with_agents(self, host_spec, policy, **options):
        """Before the hosts are up: each runs ebbd."""
        options = {"libvirt_uri": "qemu:///system", "run_dir": "/run/ebb", "host": host_spec,
                   "state_dir": f"{self.dir}/$1/ebb", "policy": policy,
                   "emu_group": self._lab("cgroup-prefix").strip() + "$1-", **options}
        self._program(AGENT, "[ -S /run/libvirt/libvirt-sock ]", options)

    def with_placers(self, traces=None, **options):
        """Before the hosts are up: each runs ebb-placed, which sets the scores instead of
        set_scores(). traces: {class of VMs: lines} (ebb-placed(8))."""
        self.traces = traces or {}
        self._program(PLACER, "[ -S /run/ebb/control.sock ]", {
            "ebbd_socket": "/run/ebb/control.sock", "run_dir": "/run/ebb",
            "traces_dir": f"{self.shared}/traces", "interval_ms": 1000, "dampen_s": 0, **options})

    def _program(self, name, ready, options):
        words = [os.path.join(BUILD, "host", "bin", name)]
        words += [f'-o "{key}={value}"' for key, value in options.items()]
        self.programs[name] = PROGRAM.format(ready=ready, command=" ".join(words), name=name)

    def ctl(self, host, *args):
        """The command line of ebbctl for a host's agent; it works from outside."""
        return [os.path.join(BUILD, "host", "bin", "ebbctl"), "--socket",
                os.path.join(self.dir, host, "run", "ebb", "control.sock"), *args]

    def ask(self, host, *args):
        """The answer of a host's agent. SetupError: there is none."""
        text = run(self.ctl(host, "--json", *args), timeout=20)
        try:
            return json.loads(text)
        except ValueError:
            return [json.loads(line) for line in text.splitlines() if line.strip()]

    def grants(self):
        """{host: its agent's VMs}, of the agents that answer."""
        found = {}
        for host in HOSTS:
            try:
                found[host] = self.ask(host, "vms")["vms"]
            except SetupError:
                continue
        return found

    def kill(self, host, program):
        """AGENT or PLACER ends without a word, and is started again. False: it does not run."""
        path = os.path.join(self.dir, host, "run", "ebb", program + ".pid")
        try:
            with open(path, encoding="ascii") as f:
                self.on(host, "kill", "-9", f.read().strip())
        except (OSError, SetupError):
            return False
        return True

    # ---- VMs ----

    def boot(self, accelerator):
        guest = os.path.join(BUILD, "guest", SERIES)
        with open(os.path.join(guest, "cmdline"), encoding="ascii") as f:
            cmdline = f.read().strip() + " " + kernel_options(accelerator)
        return domain.Boot(os.path.join(BUILD, "qemu", "bin", "qemu-system-x86_64-ebb"),
                           os.path.join(guest, "vmlinuz"), os.path.join(guest, "initramfs"),
                           cmdline, accelerator, "", LINK_DIR, self.shared, bridge=BRIDGE,
                           command_dir=COMMAND_DIR, keeps_consoles=True)

    def make_disks(self, boot, vm, folder):
        """Sparse files on the shared disk, each with what is in a folder. With a journal: a host
        may be lost while they are in use."""
        for i, mib in enumerate(vm.disks_mib):
            path = domain.disk_path(boot, vm, i)
            with open(path, "wb") as f:
                f.truncate(mib << 20)
            run(["/sbin/mkfs.ext4", "-q", "-F", "-E", "nodiscard", "-d", folder, path])

    def add_vm(self, boot, vm, **meta):
        """Makes it a resource of Pacemaker's, which starts it as soon as a host has a score. meta:
        its meta attributes."""
        path = os.path.join(self.shared, vm.name + ".xml")
        with open(path, "w", encoding="utf-8") as f:
            f.write(domain.xml(boot, vm))
        for scope, element in (("resources", resource(vm.name, path, meta)),
                               *(("constraints", rule) for rule in rules(vm.name))):
            self.on("h1", "cibadmin", "--create", "--scope", scope, "--xml-text",
                    ET.tostring(element, encoding="unicode"))

    def start_vm(self, name):
        """One that was added with the meta attribute target-role=Stopped."""
        self.on("h1", "crm_resource", "-r", name, "--meta", "-d", "target-role")

    def shell(self, host, vm, command, patience_s=20):
        """Runs a command in a guest that is on that host."""
        path = os.path.join(self.dir, host) + COMMAND_DIR + f"/{vm.name}.cmd"
        return run([os.path.join(TOP, "scripts", "vm-exec"), "-t", str(patience_s), path, command],
                   timeout=patience_s + 10)

    def set_scores(self, vm_name, scores, via="h1"):
        """By hand, {host: score}: the highest first, so that no transition goes to another one."""
        for host, score in sorted(scores.items(), key=lambda item: -item[1]):
            self.on(via, "attrd_updater", "-N", host, "-n", score_name(vm_name), "-U", str(score))

    def state(self):
        """State of the cluster, as the first host sees it that belongs to the majority: one that
        has just booted knows nothing yet. None: there is none."""
        for host in HOSTS:
            done = subprocess.run(self._command("exec", host, "timeout", "8", "crm_mon", "-1",
                                                "-r", "-A", "--output-as=xml"),
                                  capture_output=True, text=True, check=False, timeout=EXEC_S,
                                  stdin=subprocess.DEVNULL)
            root = ET.fromstring(done.stdout) if not done.returncode else None
            if root is not None and has_quorum(root):
                return State(root)
        return None

    def wait(self, until, patience_s, what):
        """Until until(state) holds; the state."""
        end_at = time.monotonic() + patience_s
        while time.monotonic() < end_at:
            state = self.state()
            if state and until(state):
                return state
            time.sleep(0.1)
        raise SetupError(f"{what}: not within {patience_s:g} s")

    def qemus(self):
        """{VM: [host, ...]}: where a QEMU of it is, as the machine sees it."""
        found = {}
        for pid in os.listdir("/proc"):
            try:
                with open(f"/proc/{pid}/cmdline", encoding="utf-8") as f:
                    named = re.search(r"\0guest=([^,]+),", f.read()) if pid.isdigit() else None
                if named:
                    with open(f"/proc/{pid}/root/run/ebb-host", encoding="utf-8") as f:
                        lab, _, host = f.read().strip().rpartition(" ")
                    if lab == self.dir:
                        found.setdefault(named.group(1), []).append(host)
            except OSError:
                continue    # it has just ended, or is none of a lab's
        return found


def has_quorum(root):
    """Whether crm_mon's host belongs to the majority, and knows what its coordinator knows."""
    coordinator = root.find("summary/current_dc")
    return coordinator is not None and coordinator.get("present") == "true" and \
        coordinator.get("with_quorum") == "true"


class State:
    """What crm_mon says."""

    def __init__(self, root):
        self.online = [n.get("name") for n in root.find("nodes") if n.get("online") == "true" and
                       n.get("unclean") == "false" and n.get("pending") == "false"]
        self.vms, self.pending = {}, {}
        for r in root.iter("resource"):
            if not r.get("resource_agent").endswith("VirtualDomain"):
                continue
            self.vms[r.get("id")] = [n.get("name") for n in r.findall("node")] if \
                r.get("role") == "Started" else []
            self.pending[r.get("id")] = r.get("pending") or ""
        self.scores = {}        # {VM: {host: score}}
        for node in root.iter("node"):
            for attribute in node.findall("attribute"):
                vm = attribute.get("name").removeprefix(score_name(""))
                if vm != attribute.get("name"):
                    self.scores.setdefault(vm, {})[node.get("name")] = _score(attribute)

    def host_of(self, vm_name):
        """None: it runs nowhere, or is on its way."""
        hosts = self.vms.get(vm_name, [])
        return hosts[0] if len(hosts) == 1 and not self.pending[vm_name] else None


def _score(attribute):
    """Of a node attribute; None: it forbids the host, or is no number."""
    try:
        return int(attribute.get("value"))
    except ValueError:
        return None


def _pairs(parent, tag, prefix, values):
    element = ET.SubElement(parent, tag, id=prefix)
    for i, (name, value) in enumerate(values.items()):
        ET.SubElement(element, "nvpair", id=f"{prefix}-{i}", name=name, value=str(value))


def resource(name, config, meta):
    """The resource of a VM; meta: attributes. libvirt's counts of CPUs and memory are no
    floors, so they are kept out of its utilization."""
    primitive = ET.Element("primitive", {"id": name, "class": "ocf", "provider": "heartbeat",
                                         "type": "VirtualDomain"})
    # The disk is a file that all hosts see, which libvirt does not believe (--unsafe).
    _pairs(primitive, "instance_attributes", f"{name}-i", {
        "config": config, "hypervisor": "qemu:///system", "migration_transport": "tcp",
        "migrate_options": "--unsafe", "force_stop": 1, "autoset_utilization_cpu": "false",
        "autoset_utilization_host_memory": "false", "autoset_utilization_hv_memory": "false"})
    operations = ET.SubElement(primitive, "operations")
    for operation, seconds in TIMEOUTS_S.items():
        # A failed move leaves the VM where it is (host-agent/pacemaker/ebb-move-failed).
        more = {"on-fail": "block"} if operation == "migrate_to" else {}
        ET.SubElement(operations, "op", id=f"{name}-{operation}", name=operation, interval="0",
                      timeout=f"{seconds}s", **more)
    ET.SubElement(operations, "op", id=f"{name}-monitor", name="monitor",
                  interval=f"{MONITOR_S}s", timeout="30s")
    _pairs(primitive, "meta_attributes", f"{name}-m", {
        "allow-migrate": "true", "resource-stickiness": 50, **meta})
    return primitive


def rules(name):
    """Where it may run: on hosts that have a score, best on the one with the highest."""
    found = []
    for kind, rule in (("never", {"score": "-INFINITY"}),
                       ("score", {"score-attribute": score_name(name)})):
        location = ET.Element("rsc_location", id=f"{name}-{kind}", rsc=name)
        rule = ET.SubElement(location, "rule", id=f"{name}-{kind}-r", **rule)
        ET.SubElement(rule, "expression", id=f"{name}-{kind}-e", attribute=score_name(name),
                      operation="not_defined" if kind == "never" else "defined")
        found.append(location)
    return found
