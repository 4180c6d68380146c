# SPDX-License-Identifier: GPL-2.0-or-later
"""What the storage daemon did with each request, by its trace. The unit is a request, not a second:
nothing here depends on how busy the machine is."""
import random
import time

from harness.lab import nbd
from rig import PATIENCE_S, VolumeCase
from request_trace import Reckoning, Trace, percentile

KIB = 1024


class Traced(VolumeCase):
    def begin(self, iops, depth):
        self.settings["depth"] = depth
        self.trace_path = self.dir + "/trace"
        self.start(iops=iops)
        self.loads = []
        self.random = random.Random(1)

    def load(self, volume, depth, connections=1, commands=(nbd.CMD_READ,)):
        self.loads += nbd.loads(self.nbd, volume, depth, connections, commands)

    def end_loads(self):
        for load in self.loads:
            load.stop()
            self.assertIsNone(load.lost)
        self.loads.clear()

    def tearDown(self):
        self.end_loads()
        super().tearDown()

    def burst(self, client, num, length, first, last):
        """Send requests to read anywhere between two offsets, and wait for all answers."""
        for _ in range(num):
            client.send(nbd.CMD_READ, self.random.randrange(first, last - length, 512), length)
        for _ in range(num):
            self.assertEqual(client.reply(length)[0], 0)

    def settled(self):
        """Return the meters when two intervals have ended since the last request."""
        self.wait_until(lambda: not any(m["queued"] or m["in-flight"]
                                        for m in self.meters().values()), "all is done")
        begun = self.meters()["a"]["counters"]["intervals"]
        self.wait_until(lambda: self.meters()["a"]["counters"]["intervals"] >= begun + 2,
                        "intervals end")
        return self.meters()


class Flows(Traced):
    """A volume with a scan of 16 requests, on a disk that does one at a time."""
    SCAN_END = 32 << 20         # not reached within PATIENCE_S
    BURST = 3
    ENOUGH = 10                 # bursts that met the scan
    MEETS = 10                  # requests of the scan wait
    RUNS, RUN = 7, 3            # of host-agent/volumed/flow.h

    def known(self, trace):
        """Return the places in the trace of those requests of the scan that the server knows as
        such. Where its client gets no CPU time it is forgotten, and then stands in line."""
        found, others, length = set(), self.RUNS, 0
        for r in trace.requests["a"]:
            if r.offset >= self.SCAN_END:
                others += 1
                continue
            length = length + 1 if others < self.RUNS else 0
            others = 0
            if length >= self.RUN:
                found.add(r.arrived_nth)
        return found

    def met(self):
        """Return [(trace, request of a burst)] of all that came while the scan waited."""
        trace = Trace(self.trace_path)
        return [(trace, r) for r in trace.requests["a"]
                if r.offset >= self.SCAN_END and r.issued is not None and
                sum(other.offset < self.SCAN_END
                    for other in trace.waiting("a", r)) >= self.MEETS]

    def test_burst_beside_its_own_scan(self):
        self.volume("a")
        self.begin(iops=200, depth=1)
        self.loads += [nbd.Load(self.nbd, "a", 16, 4 * KIB, self.SCAN_END // (4 * KIB))]
        self.loads[0].start()
        # It is not known as a scan at once.
        self.wait_until(lambda: self.meters()["a"]["counters"]["issued"] >= 16, "it scans")
        client = nbd.Client(self.nbd, "a")
        until = time.monotonic() + PATIENCE_S
        while len(self.met()) < self.ENOUGH * self.BURST:
            self.assertLess(time.monotonic(), until, "the scan never waits")
            for _ in range(self.ENOUGH):
                self.burst(client, self.BURST, 4 * KIB, self.SCAN_END, 2 * self.SCAN_END)
        met = self.met()
        known = self.known(met[-1][0])
        self.assertGreater(len(known), self.ENOUGH)
        for trace, r in met:
            own = 1 + sum(other.offset >= self.SCAN_END for other in trace.waiting("a", r))
            scanned = sum(other.arrived_nth in known for other in trace.passed("a", r))
            # They take turns. So one of the scan goes before each of the burst, and perhaps one
            # more before the first.
            self.assertLessEqual(scanned, own + 1)


class Kinds(Traced):
    """A volume that is flooded with requests other than reads, on a disk that a promise needs most
    of."""
    DEPTH = 8
    COMMANDS = {"write": nbd.CMD_WRITE, "flush": nbd.CMD_FLUSH, "discard": nbd.CMD_TRIM,
                "zeroes": nbd.CMD_ZEROES}
    ENOUGH = 20                 # requests of each kind

    def flooded(self):
        trace = Trace(self.trace_path)
        kinds = [r.kind for r in trace.requests["flood"] if r.issued is not None]
        return all(kinds.count(kind) >= self.ENOUGH for kind in self.COMMANDS)

    def test_all_take_part(self):
        self.volume("a", reserve_iops=150)
        self.volume("flood")
        self.begin(iops=300, depth=self.DEPTH)
        self.load("a", 32, 2)
        self.load("flood", 64, 4, tuple(self.COMMANDS.values()))
        self.wait_until(self.flooded, "all kinds go to the disk")
        self.end_loads()
        meters, trace = self.settled(), Trace(self.trace_path)
        requests = trace.requests["flood"]
        # What is due may go beyond the depth by an eighth.
        self.assertLessEqual(trace.most_at_disk(), self.DEPTH + self.DEPTH // 8)
        for kind in self.COMMANDS:
            waited = [r for r in requests if r.kind == kind and r.issued > r.arrived]
            self.assertGreater(len(waited), 0, kind)
        counters = meters["flood"]["counters"]
        self.assertEqual((counters["arrived"], counters["issued-units"]),
                         (len(requests), sum(r.units for r in requests)))
        self.assertEqual([counters[key] for key in ("writes", "flushes", "discards", "errors")],
                         [sum(r.kind == kind for r in requests)
                          for kind in ("write", "flush", "discard")] + [0])
        # A flush takes turns with at most eight flows, whatever waits in them.
        flushes = [r for r in requests if r.kind == "flush"]
        self.assertGreater(max(len(trace.waiting("flood", r)) for r in flushes), 16)
        self.assertLessEqual(max(len(trace.passed("flood", r)) for r in flushes), 16)


class Meter(Traced):
    """On a disk that can not keep all promises."""
    PROMISES = {"a": 300, "b": 100, "c": 50}

    def begin_promises(self):
        for name, iops in self.PROMISES.items():
            self.volume(name, reserve_iops=iops)
        self.volume("flood")
        self.begin(iops=300, depth=8)

    def work(self, seconds):
        """a, the flood and c, whose requests are large, have some open all the time. b comes and
        goes, with requests of any size."""
        self.load("a", 64, 4)
        self.load("flood", 64, 4)
        self.loads += [nbd.Load(self.nbd, "c", 8, 300 * KIB, 100)]
        self.loads[-1].start()
        b = nbd.Client(self.nbd, "b")
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            length = self.random.choice((4, 64, 65, 300)) * KIB
            self.burst(b, self.random.randrange(1, 16), length, 0, 8 << 20)
            time.sleep(self.random.random() / 10)
        self.end_loads()

    def test_meters_follow_from_the_trace(self):
        self.begin_promises()
        self.work(4)
        meters, trace = self.settled(), Trace(self.trace_path)
        at_stake = 0
        for name, iops in self.PROMISES.items():
            counters, told = meters[name]["counters"], meters[name]["delay"]
            requests = trace.requests[name]
            r = Reckoning(trace, name, iops).finish(1)
            self.assertEqual(
                {key: counters[key] for key in (
                    "arrived", "issued", "issued-units", "waited-ns", "charged", "early", "missed",
                    "violated", "overdue", "due-requests", "late-ns", "late-max-ns")},
                {"arrived": len(requests), "issued": len(requests),
                 "issued-units": sum(q.units for q in requests),
                 "waited-ns": sum(q.issued - q.arrived for q in requests),
                 "charged": r.charged, "early": r.early, "missed": r.missed,
                 "violated": r.violated, "overdue": r.overdue, "due-requests": len(r.delays),
                 "late-ns": sum(r.delays), "late-max-ns": max(r.delays)}, name)
            # Strong metering: a percentile is the bound of its class, a quarter too high at most.
            for key, permille in (("p50-ns", 500), ("p90-ns", 900), ("p99-ns", 990),
                                  ("p999-ns", 999)):
                exact = percentile(r.delays, permille)
                self.assertGreaterEqual(told[key], exact, (name, key))
                self.assertLessEqual(told[key], max(1000, exact * 1.25), (name, key))
            self.assertEqual(told["max-ns"], max(r.delays))
            at_stake += r.overdue
        # Weak metering had something to count.
        self.assertGreater(at_stake, 50)
