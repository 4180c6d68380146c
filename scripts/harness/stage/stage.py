# SPDX-License-Identifier: GPL-2.0-or-later
"""What scenarios do with their VMs, step by step (their play.py). Nothing here decides about CPUs:
that is the agent's part."""
import concurrent.futures
import json
import os
import time

from harness.judge import yardstick
from harness.lab import domain
from harness.lab.process import SetupError

JOIN_S = 90         # longest wait for a VM to boot, load its records and run
LEAVE_S = 60        # longest wait for an engine to verify its records and the VM to be gone
SLACK_S = 30        # that an engine may run beyond its schedule: it counts its own seconds
RESULT = "oltp-result "


class SceneError(Exception):
    """The scenario could not go on; the records until then are still judged."""


class Stage:
    """The VMs of a running scenario, and the clock."""

    def __init__(self, lab, boot, sampler, plan, scale, table):
        self.lab, self.boot, self.sampler, self.table = lab, boot, sampler, table
        self.vms, self.scale = {vm.name: vm for vm in plan.vms}, scale
        self.steps = []
        self.more = plan.more   # what else goes into run.json
        self.doing = ""

    def step(self, action, vm, detail):
        self.doing = detail
        self.steps.append({"t_s": round(self.sampler.elapsed(), 3), "action": action, "vm": vm,
                           "detail": detail})

    def start(self, name):
        self.step("start", name, f"{name} starts")
        self._do(self.lab.virsh, "start", self.boot.prefix + name)

    def start_yardstick(self):
        """It runs until all VMs are gone: it is no part of what happens."""
        self.doing = f"{yardstick.NAME} starts, which measures the speed of the machine"
        self._do(self.lab.virsh, "start", self.boot.prefix + yardstick.NAME)
        self.wait_join(yardstick.NAME)

    def stop(self, name):
        self.step("stop", name, f"{name} is told to end")
        self._do(self.lab.in_guest, self.boot, self.vms[name],
                 "kill -TERM $(pidof oltp-server)")

    def end_life(self, name):
        """Keeps what the engine of a VM that has left said at its end: its console is overwritten
        when the VM starts again."""
        self.more.setdefault("earlier_results", {}).setdefault(name, []).append(
            result_of(domain.console_path(self.boot, self.vms[name])))

    def tell(self, name, command):
        """Writes a line to the engine of a VM."""
        self._do(self.lab.in_guest, self.boot, self.vms[name], f"echo {command} >/run/oltp")

    def tell_later(self, plans):
        """Has lines written to the engines of VMs, {name: [(t_s, line)]}, times in order. Guests
        do it themselves: their terminals are slow while their CPUs are busy."""
        def tell(name):
            now, script = self.sampler.elapsed(), []
            for at, line in plans[name]:
                script.append(f"sleep {max(0.0, at - now):.2f}; echo {line} >/run/oltp")
                now = max(at, now)
            self._do(self.lab.in_guest, self.boot, self.vms[name],
                     f"({'; '.join(script)}) >/dev/null 2>&1 &")
        with concurrent.futures.ThreadPoolExecutor(len(plans)) as guests:
            for told in [guests.submit(tell, name) for name in plans]:
                told.result()

    def set_max(self, name, node, cpus, pool_mib):
        """As the operator: the most that a VM may hold on a guest node."""
        self._do(self.lab.ask, "set", self.boot.prefix + name, f"max.{node}={cpus}",
                 f"mem.node{node}.max={pool_mib}")

    def set_memory(self, name, node, pool_mib):
        """As the operator: the most pool memory that a VM may hold on a guest node."""
        self._do(self.lab.ask, "set", self.boot.prefix + name, f"mem.node{node}.max={pool_mib}")

    def set_policy(self, name):
        """As the operator: how CPUs are divided from now on."""
        self.step("policy", "", f"the operator sets the policy {name}")
        self._do(self.lab.ask, "policy", name)

    def restart_agent(self, options):
        """Starts the agent anew with other options; VMs keep what they hold, and where they are."""
        self.lab.kill_agent()
        self.lab.agent_options.update(options)
        self._do(self.lab.start_agent)

    @staticmethod
    def _do(what, *args):
        try:
            what(*args)
        except SetupError as e:
            raise SceneError(str(e)) from None

    def watch(self, seconds, until=None):
        """Shows the table until the time is over or until(state) holds; True if it did."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            state = self.sampler.state()
            self.table.show(self.sampler.elapsed(), state, self.doing)
            if until and until(state):
                return True
            if not self.sampler.is_alive():
                raise SceneError(self.sampler.error or "ebbctl top ended")
            time.sleep(0.05)
        return False

    def wait_join(self, name):
        seen = False

        def joined(state):
            nonlocal seen
            s = state.get(name)
            runs = s is not None and s.state == "running"
            if seen and not runs:
                raise SceneError(f"{name} ended before its engine ran, see its console")
            seen = runs
            return runs and bool(s.driver) and s.workers > 0

        if not self.watch(JOIN_S * self.scale, joined):
            raise SceneError(f"the engine of {name} did not run within {JOIN_S * self.scale:g} s, "
                             f"see its console")
        self.doing = f"{name} has joined"

    def wait_leave(self, name, extra_s=0.0):
        def left(state):
            return state.get(name) is None or state[name].state != "running"
        patience = LEAVE_S * self.scale + extra_s
        if not self.watch(patience, left):
            raise SceneError(f"{name} did not end within {patience:g} s, see its console")
        self.doing = f"{name} has left"

    def run_schedule(self, seconds):
        """The only VM, from its start until its engine has done what it was told to do by time."""
        name = next(iter(self.vms))
        self.start(name)
        self.wait_join(name)
        self.step("run", name, "load changes by schedule; the engine chooses its CPUs")
        self.wait_leave(name, seconds + SLACK_S * self.scale)
        self.watch(0.5)


def result_of(path):
    """The final line of an engine on its VM's console; None if there is none."""
    if not os.path.exists(path):
        return None
    with open(path, encoding="utf-8", errors="replace") as f:
        lines = [line for line in f if line.startswith(RESULT)]
    return result_in(lines[-1]) if lines else None


def result_in(line):
    """What a final line of an engine says; None if it is not whole."""
    try:
        told = json.loads(line[len(RESULT):])
        memory = told.get("memory") or {}
        return {**told, "failed": told["failed_transactions"],
                "lost_records": memory.get("lost_records")}
    except (ValueError, KeyError, TypeError):
        return None


def results(boot, vms):
    return {vm.name: result_of(domain.console_path(boot, vm)) for vm in vms}
