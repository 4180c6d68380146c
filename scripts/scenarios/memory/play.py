# SPDX-License-Identifier: GPL-2.0-or-later
"""What happens in `memory`, and what is sampled besides: the host's memory, records on disk.

The operator takes the CPUs and the memory of a node from the VM by lowering what it may ever have
there, and gives them back by raising it again; when and how they go is the agent's and the
engine's part.
"""
import re
import time

from harness.lab import domain, hostmem
from harness.lab.console import STATISTICS, Console, statistics
from harness.lab.process import SetupError

RSS_EVERY_S = 0.25
VERIFIED = re.compile(r"oltp: t=\S+ audit .*\brc=-?\d+")
VERIFY_S = 60       # longest on-line verification of the table
RETURN_S = 40       # longest wait for CPUs and memory to be held again
SLACK_S = 5         # that a demand may be seen to outlast its deadline


def play(stage, dwell_s):
    name, vm = next(iter(stage.vms.items()))
    node = stage.more["memory"]["node"]
    stage.start(name)
    stage.wait_join(name)
    full = stage.watch(RETURN_S * stage.scale, lambda state: _cpus(state, name) == _most_cpus(vm))
    if not full:
        stage.doing = "not all CPUs were taken"
    stage.watch(dwell_s)
    _verify(stage, name, "before")
    before = _bytes(stage, name, node)

    stage.step("take", name, f"the operator takes node {node}: its CPUs and its memory")
    stage.set_max(name, node, 0, 0)
    deadline_s = stage.more["memory"]["deadline_ms"] / 1000
    stage.watch(deadline_s + SLACK_S, lambda state: _bytes(stage, name, node) == 0)
    stage.doing = f"{name} does without node {node}"
    stage.watch(dwell_s)
    _verify(stage, name, "without")

    cell = vm.cells[node]
    stage.step("give", name, f"the operator gives node {node} back")
    stage.set_max(name, node, cell.max_cpus, cell.pool_mib)
    stage.watch(RETURN_S * stage.scale, lambda state: _cpus(state, name) == _most_cpus(vm) and
                _bytes(stage, name, node) >= 0.9 * before)
    stage.doing = f"{name} has node {node} again"
    stage.watch(1.5 * dwell_s)
    _verify(stage, name, "after")
    stage.stop(name)
    stage.wait_leave(name)


def _most_cpus(vm):
    return sum(c.max_cpus for c in vm.cells)


def _cpus(state, name):
    return state[name].cpus_held if name in state else 0


def _bytes(stage, name, node):
    sample = stage.sampler.state().get(name)
    parts = sample.mem_nodes_held.split("/") if sample else []
    return int(parts[node]) if node < len(parts) and parts[node] else 0


def _verify(stage, name, phase):
    """Has the engine verify its table while it runs; what it says goes into run.json."""
    console = Console(domain.console_path(stage.boot, stage.vms[name]))
    console.skip()
    stage.step(f"verify {phase}", name, f"the whole table is verified ({phase})")
    stage.tell(name, "audit")
    answers = []

    def answered(_state):
        answers.extend(line for line in console.lines() if VERIFIED.match(line))
        return answers
    if stage.watch(VERIFY_S * stage.scale, answered):
        seen = stage.sampler.state().get(name)
        stage.more["memory"]["verifications"].append({
            "phase": phase, **verification(answers[0]),
            "cold_records": seen.cold_records if seen else None})


class Probe:
    """Adds to each sample what the agent does not know; called from the sampler's thread."""

    def __init__(self, lab, boot, vms):
        self.lab, self.boot = lab, boot
        self.vms = {vm.name: vm for vm in vms}
        self.consoles = {vm.name: Console(domain.console_path(boot, vm)) for vm in vms}
        self.told = {}          # vm: what its engine's last line of statistics said
        self.meters = {}
        self.rss = {}           # vm: (when, bytes)

    def __call__(self, sample):
        if sample.state != "running":
            self.meters.pop(sample.vm, None)
            return
        sample.host_rss_bytes = self._rss(sample.vm)
        for line in self.consoles[sample.vm].lines():
            if STATISTICS.match(line):
                self.told[sample.vm] = statistics(line)
        told = self.told.get(sample.vm, {})
        sample.cold_reads, sample.cold_records = told.get("cold_reads"), told.get("cold")

    def _rss(self, name):
        when, value = self.rss.get(name, (0.0, None))
        now = time.monotonic()
        if now - when >= RSS_EVERY_S:
            meter = self.meters.get(name) or self._meter(name)
            value = meter.read() if meter else None
            self.rss[name] = (now, value)
        return value

    def _meter(self, name):
        pid = hostmem.qemu_pid(self.vms[name].uuid)
        if pid is None:
            return None
        try:
            text = self.lab.virsh("qemu-monitor-command", "--hmp", self.boot.prefix + name,
                                  "info ramblock")
            self.meters[name] = hostmem.PoolMeter(pid, text)
        except (SetupError, ValueError):
            return None     # it starts or ends just now
        return self.meters[name]


def verification(line):
    """What an engine says of a look over its whole table (oltp-engine/README.md)."""
    told = dict(re.findall(r"\b(\w+)=(\S+)", line))
    return {"ms": float(told["ms"]), "complete": told["complete"] == "1", "rc": int(told["rc"]),
            "records": int(told["records"]), "damaged": int(told["damaged"]),
            "updates": int(told["updates"]), "checksum": told["content"]}
