# SPDX-License-Identifier: GPL-2.0-or-later
"""What happens in `broker`: the same story once under each policy, with VMs that start anew.

Both VMs boot and fill what they may hold: the cold one nearly all, the warm one its guaranteed
minimum, by an order of the operator that is lifted when it shall grow. Then the cold one has
nothing to do any more, and the warm one grows; they change places; in the end both work.
"""
from harness.lab import domain
from harness.lab.console import STATISTICS, Console, statistics
from harness.lab.process import SetupError

from . import plan

FILLED_PCT = 90     # of the most that it may hold
BUSY = 1e6          # transactions per second: more than any engine can do, so work is unlimited
LOOK_S = 1.0        # between two looks at the histograms
MIB = 1 << 20


def play(stage, _dwell_s):
    b = stage.more["broker"]
    for i, turn in enumerate(b["rounds"]):
        if i:
            stage.set_policy(turn["policy"])
        _round(stage, b, turn)
        if i + 1 < len(b["rounds"]):
            for name in stage.vms:
                stage.end_life(name)


def _round(stage, b, turn):
    variant, policy = turn["variant"], turn["policy"]
    cold, warm = plan.COLD, plan.WARM
    stage.sampler.probe.variant = variant

    def step(action, vm, detail):
        stage.step(action, vm, detail)
        stage.steps[-1]["variant"] = variant
    step("begin", "", f"a round under the policy {policy}")
    stage.set_memory(warm, 0, b["min_mib"])
    for name in (cold, warm):
        stage.start(name)
    for name in (cold, warm):
        stage.wait_join(name)
    stage.doing = f"{cold} fills the pool"
    stage.watch(b["fill_s"], lambda state: cold in state and
                state[cold].mem_held_bytes >= FILLED_PCT / 100 * b["max_mib"] * MIB)
    stage.watch(b["window_s"] / 2)
    step("idle", cold, f"{cold} has nothing to do any more")
    stage.tell(cold, "rate 0")
    stage.watch(b["idle_s"])
    step("ramp", warm, f"{warm} may grow")
    stage.set_memory(warm, 0, b["max_mib"])
    _watch_histograms(stage, b, variant, b["ramp_s"])
    step("restart", cold, f"{cold} works again, {warm} has nothing to do any more")
    stage.tell(warm, "rate 0")
    stage.tell(cold, f"rate {BUSY:.0f}")
    stage.watch(b["restart_s"])
    step("both", warm, f"{warm} works again, too")
    stage.tell(warm, f"rate {BUSY:.0f}")
    stage.watch(b["both_s"])
    step("end", "", "the engines are told to end")
    for name in (cold, warm):
        stage.stop(name)
    for name in (cold, warm):
        stage.wait_leave(name)


def _watch_histograms(stage, b, variant, seconds):
    """Keeps each histogram that a guest sends meanwhile."""
    end = stage.sampler.elapsed() + seconds
    seen = set()
    while stage.sampler.elapsed() < end:
        stage.watch(min(LOOK_S, max(0.0, end - stage.sampler.elapsed())))
        for told in histograms(stage.lab, stage.boot.prefix, stage.vms):
            key = (told["vm"], told["seq"])
            if key not in seen:
                seen.add(key)
                b["histograms"].append({"t_s": round(stage.sampler.elapsed(), 3),
                                        "variant": variant, **told})


def histograms(lab, prefix, names):
    """[{vm, seq, buckets: [[value, KiB, node]]}] as the agent has them now, for the VMs that have
    sent one."""
    found = []
    for name in names:
        try:
            told = lab.ask("histogram", prefix + name)["histogram"]
        except (SetupError, KeyError, TypeError):
            continue
        if told and told["age_ms"] is not None:
            found.append({"vm": name, "seq": told["seq"],
                          "cutoff": max((n["cutoff"] for n in told["nodes"]), default=0),
                          "buckets": [[x["value"], x["kib"], x["node"]]
                                      for x in told["buckets"]]})
    return found


class Probe:
    """Adds to each sample the round, and what the engine says of its records on disk."""

    def __init__(self, _lab, boot, vms):
        self.variant = ""
        self.consoles = {vm.name: Console(domain.console_path(boot, vm)) for vm in vms}
        self.told = {}

    def __call__(self, sample):
        sample.variant = self.variant
        if sample.state != "running":
            # The console is written anew when the VM starts again.
            self.consoles[sample.vm].rewind()
            self.told.pop(sample.vm, None)
            return
        for line in self.consoles[sample.vm].lines():
            if STATISTICS.match(line):
                self.told[sample.vm] = statistics(line)
        told = self.told.get(sample.vm, {})
        sample.cold_reads, sample.cold_records = told.get("cold_reads"), told.get("cold")
