# SPDX-License-Identifier: GPL-2.0-or-later
"""What happens in `rebalance`: the same loads with cores that stay as they are, and with cores that
are given anew.

First the VMs show what one of them can do; rates are parts of that. Then VMs that are on the same
cores compute together while all others rest (the worst start of figure 11), then there are bursts,
by seed. What the static agent has left is what the other one begins with.
"""
from harness.judge import delivery
from harness.stage.stage import SceneError

from . import plan
from .plan import REBALANCED

SETTLE_S = 3.0
TELL_S = 10.0       # longest until all VMs know what they have to do
WORK_S = 90.0       # longest until they have done what they could not do in time
BOOT_S = 240        # longest wait for all VMs together to boot, on cores that they share


def play(stage, _dwell_s):
    r = stage.more["rebalance"]
    r["capacity_ps"] = capacity = _contend(stage, _bring_up(stage))
    for mode, is_on in r["modes"].items():
        stage.sampler.probe.variant = mode
        if mode == REBALANCED:
            stage.step("agent", "", "the agent starts again: cores are given anew where they are "
                       "hot" if is_on else "the agent starts again: cores stay as they were given")
            stage.restart_agent({"hot_window_s": r["window_s"] if is_on else
                                 plan.NEVER_S})
            stage.watch(SETTLE_S)
        turns = range(len(r["seeds"]))
        # With the start that is worst: before anything was moved.
        for turn in turns:
            _skew(stage, r, mode, turn, capacity)
        for turn in turns:
            _bursts(stage, r, mode, turn, capacity)
    stage.step("end", "", "the engines are told to end")
    for name in stage.vms:
        stage.stop(name)
    for name in stage.vms:
        stage.wait_leave(name)


def _bring_up(stage):
    """All VMs run and have nothing to do. Returns what one of them can do alone."""
    names = list(stage.vms)
    stage.start(names[0])
    stage.wait_join(names[0])
    stage.watch(1.0)
    stage.step("calibrate", names[0], f"{names[0]} alone: as much as it can")
    work = _Work(names[:1])
    stage.watch(plan.CALIBRATE_S, work.look)
    alone = work.rate(plan.CALIBRATE_S)
    stage.tell(names[0], "rate 0")
    for name in names[1:]:
        stage.start(name)
    _rest(stage, names[1:])
    stage.watch(SETTLE_S)
    return alone


def _contend(stage, alone):
    """What one VM can do with cores of its own while all compute: as siblings of one real core,
    and with one memory, CPUs are slower then."""
    loads = _Loads(stage, alone)
    for name in stage.vms:
        loads.set(name, 0.0, 1.0)
        loads.set(name, plan.CONTEND_S, 0.0)
    loads.tell()
    stage.step("contend", "", "all at once, each as much as one can alone")
    loads.wait(plan.CONTEND_S / 4)
    work = _Work(stage.vms)
    loads.wait(plan.CONTEND_S, work.look)
    _end_work(stage)
    return work.rate(plan.CONTEND_S * 3 / 4) * plan.CPUS / plan.CORES


class _Work:
    """What VMs do in a span of time, by those samples of it whose CPU times are known."""

    def __init__(self, names):
        self.names, self.begin, self.end = names, {}, {}

    def look(self, state):
        """For stage.watch, until the span is over."""
        for name in self.names:
            s = state.get(name)
            if s is not None and delivery.known_of([s]):
                self.begin.setdefault(name, s)
                self.end[name] = s
        return False

    def rate(self, span_s):
        """Transactions per second of all together, had all CPU time come that was due."""
        return sum(self._rate_of(name, span_s) for name in self.names)

    def _rate_of(self, name, span_s):
        """Between the reports that the first and the last sample are of."""
        if name not in self.begin:
            raise SceneError(f"{name}: no CPU time is known of it")
        begin, end = self.begin[name], self.end[name]
        first, last = (s.t_s - (s.report_age_ms or 0) / 1000 for s in (begin, end))
        if last - first < span_s / 2:
            raise SceneError(f"{name}: its CPU time is known of {last - first:.1f} s of "
                             f"{span_s:.1f} s only")
        rate = delivery.over([begin, end]).full((end.committed - begin.committed) / (last - first))
        if not rate:
            raise SceneError(f"{name} committed nothing")
        return rate


def _rest(stage, names):
    """Each VM has nothing to do from the moment in which its engine runs, or those that come first
    would keep the others from booting."""
    waiting = list(names)

    def rest(state):
        for name in list(waiting):
            s = state.get(name)
            if s is not None and s.state == "running" and s.driver and s.workers > 0:
                stage.tell(name, "rate 0")
                waiting.remove(name)
        return not waiting
    if not stage.watch(BOOT_S * stage.scale, rest):
        raise SceneError(f"{', '.join(waiting)} did not run within {BOOT_S * stage.scale:g} s")


class _Loads:
    """What each VM is to do at which moments, told to all of them while they have nothing to do."""

    def __init__(self, stage, capacity):
        self.stage, self.capacity = stage, capacity
        self.begin = stage.sampler.elapsed() + TELL_S * stage.scale
        self.plans = {name: [] for name in stage.vms}

    def set(self, name, at, part):
        """From `at` seconds after the begin on; a part of what one VM can do alone."""
        self.plans[name].append((self.begin + at, f"rate {part * self.capacity:.2f}"))

    def tell(self):
        self.stage.tell_later(self.plans)
        if self.stage.sampler.elapsed() > self.begin:
            raise SceneError(f"guests with nothing to do were not told their loads within "
                             f"{TELL_S * self.stage.scale:g} s")
        self.wait(0.0)

    def wait(self, at, until=None):
        self.stage.watch(self.begin + at - self.stage.sampler.elapsed(), until)


def _step(stage, mode, turn, action, vm, detail, **more):
    stage.step(action, vm, detail)
    stage.steps[-1].update(variant=mode, turn=turn, **more)


def _end_work(stage):
    """Waits until what has come before the loads ended is done, too."""
    def is_done(state):
        return all(name in state and state[name].tps == 0 for name in stage.vms)
    if not stage.watch(WORK_S * stage.scale, is_done):
        raise SceneError(f"the VMs still work {WORK_S * stage.scale:g} s after their loads ended")


def _bursts(stage, r, mode, turn, capacity):
    stage.sampler.probe.turn = turn
    loads, at = _Loads(stage, capacity), SETTLE_S
    for name in stage.vms:
        loads.set(name, 0.0, r["low"])
    for name in r["seeds"][turn]["bursts"]:
        loads.set(name, at, r["high"])
        loads.set(name, at + r["burst_s"], r["low"])
        at += r["burst_s"] + r["pause_s"]
    for name in stage.vms:
        loads.set(name, at, 0.0)
    loads.tell()
    at = SETTLE_S
    for name in r["seeds"][turn]["bursts"]:
        loads.wait(at)
        _step(stage, mode, turn, "burst", name, f"{name} has much to do ({mode})")
        loads.wait(at + r["burst_s"])
        _step(stage, mode, turn, "pause", name, f"{name} has little to do again ({mode})")
        at += r["burst_s"] + r["pause_s"]
    loads.wait(at)
    _step(stage, mode, turn, "bursts end", "", "the bursts are over")
    _end_work(stage)


def pairs(places):
    """Groups of VMs that are on the same cores and no other, largest first. places: {core: VMs}."""
    cores = {}
    for core, vms in places.items():
        for vm in vms:
            cores.setdefault(vm, set()).add(core)
    groups = {}
    for vm in sorted(cores):
        groups.setdefault(frozenset(cores[vm]), []).append(vm)
    return sorted((g for g in groups.values() if len(g) > 1), key=lambda g: (-len(g), g))


def shared(places, vms):
    """On how many cores two of these VMs or more are."""
    return sum(len(set(here) & set(vms)) >= 2 for here in places.values())


def worst(places, names, turn):
    """Half of the VMs, of which as many as possible are on the same cores: pairs by turn, then
    whoever is left. places: {core: VMs}"""
    groups = [g[:2] for g in pairs(places)]
    groups = groups[turn % len(groups):] + groups[:turn % len(groups)] if groups else []
    found = []
    for vm in [vm for g in groups for vm in g] + list(names):
        if vm not in found and len(found) < len(names) // 2:
            found.append(vm)
    return found


def _skew(stage, r, mode, turn, capacity):
    stage.sampler.probe.turn = turn
    places = {core: set(here.values()) for core, here in stage.sampler.meter.places().items()}
    active = worst(places, list(stage.vms), turn)
    loads = _Loads(stage, capacity)
    for name in stage.vms:
        loads.set(name, 0.0, r["skew"] if name in active else plan.IDLE)
        loads.set(name, r["skew_s"], 0.0)
    loads.tell()
    _step(stage, mode, turn, "skew", "", f"{', '.join(active)} compute, the others rest ({mode})",
          active=active, shared_cores=shared(places, active))
    loads.wait(r["skew_s"])
    _step(stage, mode, turn, "skew end", "", "all rest")
    _end_work(stage)


class Probe:
    """Adds mode and seed to each sample."""

    def __init__(self, _lab, _boot, _vms):
        self.variant, self.turn = "", None

    def __call__(self, sample):
        sample.variant, sample.turn = self.variant, self.turn
