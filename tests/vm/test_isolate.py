# SPDX-License-Identifier: GPL-2.0-or-later
"""A lent CPU is empty, since the guest's monitor keeps threads off it that did not ask for it."""
from .rig import SERIES, VmTest, only_in_full, wait_for

BUSY = 12
SPIN = "while :; do :; done"
BUSY_TASKS = f'sh -c "{f"{SPIN} & " * BUSY}wait"'
# In ticks (1/100 s) of a CPU: what must run before a check that nothing runs means something.
ENOUGH = 200
SLOW_S = 300                    # for guests that share two cores with others


class KeptOff(VmTest):
    def setUp(self):
        super().setUp()
        self.monitor = None

    def user_ticks(self, g, cpu):
        """Time that user space has run on a CPU of the guest, in ticks."""
        for line in g.must("cat /proc/stat").splitlines():
            words = line.split()
            if words[0] == f"cpu{cpu}":
                return int(words[1]) + int(words[2])
        raise AssertionError(f"no CPU {cpu} in /proc/stat")

    def run_ns(self, g, cpu):
        """Time that anything has run on it, the kernel's threads included."""
        for line in g.must("cat /proc/schedstat").splitlines():
            words = line.split()
            if words[0] == f"cpu{cpu}":
                return int(words[7])
        raise AssertionError(f"no CPU {cpu} in /proc/schedstat")

    def places(self, g):
        """CPUs that the busy tasks ran on last."""
        # Tasks may end under the eyes of grep, but not these.
        lines = g.call(f"grep -hE '^[0-9]+ .sh. . '$(cat {self.busy}.pid)' ' /proc/[0-9]*/stat"
                       )[1].splitlines()
        self.assertEqual(len(lines), BUSY, lines)
        return {int(line.rsplit(") ", 1)[1].split()[36]) for line in lines}

    def watch(self, g):
        """How long user space, and anything, ran on the lent CPU while the startup CPU worked
        for ENOUGH ticks; (ticks, ns)."""
        user, ns = self.user_ticks(g, self.lent), self.run_ns(g, self.lent)
        end = self.user_ticks(g, 0) + ENOUGH
        wait_for("the busy tasks run", lambda: self.user_ticks(g, 0) >= end, SLOW_S)
        return self.user_ticks(g, self.lent) - user, self.run_ns(g, self.lent) - ns

    def watch_until_used(self, g):
        start = self.user_ticks(g, self.lent)
        wait_for("user space runs on the lent CPU",
                 lambda: self.user_ticks(g, self.lent) >= start + 20, SLOW_S)

    def monitor_begins(self, g):
        self.monitor = g.begin("ebb-monitord --isolate 2>&1")
        wait_for("the monitor has looked at all threads", lambda: "stay on the startup set" in
                 g.must(f"cat {self.monitor}"), SLOW_S)

    def life(self, series):
        g = self.guest(f"empty-{series}", cells=((2, 1),), series=series,
                       options={"monitor": 0}).start()
        g.test("loop 1 1 any lend")
        g.wait_lent(1)
        (self.lent,) = g.lent()
        self.busy = g.begin(BUSY_TASKS)
        for part in (self.used_without, self.empty_with, self.engine_runs_there,
                     self.killed_and_restarted, self.let_go_at_the_end):
            with self.subTest(part.__name__):
                part(g)

    def used_without(self, g):
        ticks, ns = self.watch(g)
        print(f"without: {ticks} ticks of user space, {ns / 1e6:.0f} ms in all", flush=True)
        self.watch_until_used(g)

    def empty_with(self, g):
        self.monitor_begins(g)
        wait_for("the busy tasks are off", lambda: self.places(g) == {0}, SLOW_S)
        ticks, ns = self.watch(g)
        print(f"with: {ticks} ticks of user space, {ns / 1e6:.0f} ms in all", flush=True)
        self.assertEqual(ticks, 0)
        self.assertEqual(self.places(g), {0})

    def engine_runs_there(self, g):
        """One that the monitor has never heard of."""
        out, answer = g.hold("hold 1")
        self.assertEqual([c["cpu"] for c in answer["cpus"]], [self.lent])
        worker = g.begin(f'taskset -c {self.lent} sh -c "{SPIN}"')
        self.watch_until_used(g)
        self.assertEqual(self.places(g), {0})
        g.end(worker)
        g.end(out)
        g.wait_lent(1)

    def killed_and_restarted(self, g):
        g.end(self.monitor)
        self.assertEqual(self.watch(g)[0], 0)
        self.monitor_begins(g)
        self.assertEqual(self.watch(g)[0], 0)

    def let_go_at_the_end(self, g):
        g.end(self.monitor, 15)
        wait_for("the monitor has let go", lambda: "let go of" in g.must(f"cat {self.monitor}"),
                 SLOW_S)
        self.watch_until_used(g)

    def test_on_6_1(self):
        self.life(SERIES[0])

    @only_in_full
    def test_on_6_12(self):
        self.life(SERIES[1])
