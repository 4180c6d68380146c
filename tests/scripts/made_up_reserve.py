# SPDX-License-Identifier: GPL-2.0-or-later
"""Made-up runs of `reserve`: what good and bad volume servers would have counted."""
import made_up
from scenarios.reserve import plan

STEP_S = 0.02


class Counters:
    """The counters of one volume over time."""

    def __init__(self):
        self.row, self.rows = [0.0, 0.0, 0.0, 0.0, 0.0], []

    def run(self, seconds, rate, busy=1.0, violated=0.0, every_s=STEP_S):
        """rate: issued per second; busy: part of the time in which requests waited; violated: per
        second, as the meter has it."""
        for _ in range(round(seconds / every_s)):
            self.rows.append([round(self.row[0], 4), int(self.row[1] + 1e-6), *self.row[2:]])
            for i, grows in enumerate((1.0, rate, busy, busy, violated)):
                self.row[i] += grows * every_s
        return self


def meet(got=1.0, delay_s=0.02, high=300, low=100):
    """Part 1. got: the part of their promises that both VMs get; delay_s: until a new one holds."""
    vm1, vm2 = Counters(), Counters()
    for vm, before, after in ((vm1, high, low), (vm2, low, high)):
        vm.run(10 + delay_s, got * before)
        vm.run(10 - delay_s, got * after)
    return {"disk_iops": 404, "high": high, "low": low, "half_s": 10.0, "begin_s": 0.0,
            "swap_s": 9.98, "swapped_s": 10.0, "end_s": 19.96,
            "looks": {"vm1": vm1.rows, "vm2": vm2.rows}}


TYPES = ("new_order", "payment", "order_status", "delivery", "stock_level")


def greedy(first=plan.RESERVED, beside=980.0, max_only=500.0, none=500.0, cpu=0.5, came=1.0,
           reads=0, baseline=0, violations=0):
    """Part 2. The throughput of t1 beside all greedy tenants; alone it is 1000, and 1200 in bursts.
    cpu: what t1 gets of the core beside others; came: of the CPU time of the core. reads: of t1
    from disk while memory is promised, baseline: those of its promised cache."""
    phases, said, t = [], [], 0.0

    def phase(mode, n, tps, has_loop=False, is_turn=False):
        nonlocal t
        core_s, part = 8.0 * 0.8 * came, cpu if n else 0.5
        phases.append({"mode": mode, "greedy": n, "has_loop": has_loop, "is_turn": is_turn,
                       "begin_s": t + 2.0, "end_s": t + 10.0, "t1_s": part * core_s,
                       "others_s": (1 - part) * core_s if n or has_loop else 0.0,
                       "issued": 800, "waiting_s": 0.1})
        said.extend((t + (i + 0.5) / 2, tps * came, 0) for i in range(20))
        t += 10.0
    for i, (mode, last) in enumerate(((first, beside), (plan.MAX_ONLY, max_only),
                                      (plan.NONE, none))):
        has_loop = mode == plan.RESERVED
        if has_loop:
            phase(mode, 0, 1200.0)
        phase(mode, 0, 1000.0, has_loop)
        for n in (1, 2, 3):
            phase(mode, n, 1000 + (last - 1000) * n / 3)
        # The machine is half as fast in the second turn.
        for speed in (1.0, 0.5, 1.0) if i == 0 else ():
            phase(mode, 0, 1000.0 * speed, has_loop, True)
            phase(mode, 3, last * speed, False, True)
    ledger = [{"vm": "t1", "resource": "memory", "unit": "ios", "rate": 116, "promised": baseline,
               "got": reads, "num_intervals": 50, "num_violations": violations, "num_unclear": 0}]
    return {"tenants": 3, "phase_s": 8.0, "settle_s": 2.0, "turns": 3, "turn_s": 8.0,
            "turn_settle_s": 2.0, "core_share": 0.8, "cpu_pct": 50,
            "reserve_mem_mib": 116, "pool_mib": 200, "said": said, "phases": phases,
            "ledger": ledger if first == plan.RESERVED else []}


def neighbours(cpu=0.5, p99_us=4000.0, first=plan.RESERVED, came=1.0):
    """Part 3. cpu: what t1 gets of the core when it is flooded; with a maximum only p99 is 16 ms
    and it gets 4%. came: of the CPU time of the core."""
    def row(mode, seconds, cpu, **more):
        core_s = seconds * came
        return {"mode": mode, "seconds": seconds, "t1_s": cpu * core_s,
                "others_s": (1 - cpu) * core_s, **more}

    def column(mode, p99_us):
        return row(mode, 30.0, 0.02, committed=4490, classes={
            name: {"p99_us": p99_us, "measured": 250} for name in TYPES})
    return {"count": 24, "cpu_pct": 50, "core_share": 1.0, "flood_s": 6.0, "rate": 150,
            "seconds": 30.0,
            "flood": [row(first, 6.0, cpu, tps=10000.0 * cpu),
                      row(plan.MAX_ONLY, 6.0, 0.04, tps=300.0)],
            "table": [column(first, p99_us), column(plan.MAX_ONLY, 16000.0)]}


def overbooked(metered=1.0, idle_violated=0.0):
    """Part 4. metered: the part of the violations that the meter has; idle_violated: what it counts
    per second of idle time."""
    looks, reckoned = {}, {}
    for name in ("tenant0", "tenant1"):
        server, client = Counters(), Counters()
        for turn in range(8):
            works = name == "tenant0" or turn % 2 == 0
            rate, busy = (50.0, 1.0) if works else (0.0, 0.0)
            server.run(5, rate, busy, (100 - rate) * metered if works else idle_violated, 0.1)
            client.run(5, rate, busy, 0.0, 0.1)
        looks[name], reckoned[name] = server.rows, client.rows
    return {"tenants": 2, "iops": 100, "idler": "tenant1", "seconds": 40.0, "idle_s": 5.0,
            "begin_s": 0.0, "end_s": 40.0, "looks": looks, "reckoned": reckoned}


def run(mode=plan.RESERVED, **parts):
    vms = ["vm1", "vm2"] if plan.MEET in parts else []
    vms += ["t1"] if {plan.GREEDY, plan.NEIGHBOURS} & set(parts) else []
    r = made_up.run("reserve", vms, reserve={
        "mode": mode, "parts": list(parts), "disk_iops": 404, "depth": 4, **parts})
    r["ablate"] = mode != plan.RESERVED
    return r
