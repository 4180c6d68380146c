# SPDX-License-Identifier: GPL-2.0-or-later
"""The counters of a volume server over time, and loads that keep a record of their own."""
import os
import threading
import time

from harness.judge.promises import Look
from harness.lab import nbd

EVERY_S = 0.05
PAUSE_S = 0.005
REQUEST_BYTES = 4096


class IoMeter(threading.Thread):
    """Asks the server again and again, until stopped. `looks`: {volume: [Look]}."""

    def __init__(self, server, clock):
        super().__init__(name="io-meter", daemon=True)
        self.server, self.clock = server, clock
        self.every_s = EVERY_S      # may be changed at any time
        self.looks = {volume.name: [] for volume in server.volumes}
        self.over, self.error = threading.Event(), None

    def run(self):
        while not self.over.is_set():
            begin = time.monotonic()
            try:
                self._look()
            except OSError as e:
                self.error = str(e)
                return
            self.over.wait(max(PAUSE_S, begin + self.every_s - time.monotonic()))

    def _look(self):
        asked = self.clock()
        told = self.server.ask("meters")
        t_s = round((asked + self.clock()) / 2, 4)
        for m in told["meters"]:
            if m["name"] in self.looks:
                c = m["counters"]
                self.looks[m["name"]].append(Look(
                    t_s, c["issued-units"], c["busy-us"] / 1e6, c["waiting-us"] / 1e6,
                    c["violated"]))

    def stop(self):
        self.over.set()
        self.join(10)


class TracedLoad(threading.Thread):
    """Keeps `depth` requests to read open on a volume in each of some spans of time, and nothing
    outside of these. `trace`: [(sent, answered)] of each request, by its own clock. It goes before
    all other programs, or it would see answers when it gets a CPU, and not when they come."""

    def __init__(self, server, volume, depth, spans, clock):
        super().__init__(name=f"load-{volume}", daemon=True)
        self.client = nbd.Client(server.nbd, volume)
        self.depth, self.spans, self.clock = depth, spans, clock
        self.trace, self.error = [], None

    def run(self):
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
        try:
            self._play()
        except OSError as e:
            self.error = str(e)
        self.client.close()

    def _play(self):
        sent, last = {}, max(end for _, end in self.spans)
        while sent or self.clock() < last:
            now = self.clock()
            is_due = any(begin <= now < end for begin, end in self.spans)
            while is_due and len(sent) < self.depth:
                offset = (len(self.trace) + len(sent)) % 1024 * REQUEST_BYTES
                at = self.clock()
                self.client.send(nbd.CMD_READ, offset, REQUEST_BYTES)
                sent[self.client.cookie] = at
            if not sent:
                time.sleep(PAUSE_S)
                continue
            cookie, error, _ = self.client.answer(REQUEST_BYTES)
            if error:
                raise OSError(error, "a request failed")
            self.trace.append((sent.pop(cookie), self.clock()))
