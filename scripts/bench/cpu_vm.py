# SPDX-License-Identifier: GPL-2.0-or-later
"""A VM of bench-cpu: its measuring program (tests/vm/guest/ebb-cpubench.c) and a line to it.

Guests have clocks of their own. What one says of its clock is turned into time.monotonic() of the
host with the offset that the quickest of some pings shows, measured anew in each round: emulated
guests see the host's time stamp counter, so that within a round nothing drifts.
"""
import time

from tests.vm import rig

from .vm import MeasuredVm, without_ebb

PINGS = 8
PATIENCE_S = 30
# The fields of the program's answers that are moments of the guest's clock.
MOMENTS = ("told_ns", "stopped_ns", "given_ns", "added_ns", "first_ns", "deadline_ns",
           "offline_ns")


class CpuVm(MeasuredVm):
    """One CPU to start with and one that comes and goes."""

    def __init__(self, name, is_stock=False, **more):
        monitor = {"monitor": 0, "module": 0} if is_stock else {}
        self.is_stock = is_stock
        super().__init__(rig.Guest(name, cells=((2, 1),),
                                   options={"modules": "virtio_console", **monitor}, **more))
        self.guest.define(self.edit)
        self.offset_s = None
        self.told = []          # events that came before they were waited for

    def start(self):
        self.guest.start(driver=not self.is_stock)
        self.begin("ebbt-cpubench", PATIENCE_S)
        self.line("ready")
        return self

    def edit(self, text):
        text = self.with_channel(text)
        return without_ebb(text) if self.is_stock else text

    @property
    def name(self):
        return self.guest.domain

    def line(self, *wanted):
        """The next object that has one of these members; events that do not are kept."""
        for i, told in enumerate(self.told):
            if any(w in told for w in wanted):
                return self.told.pop(i)
        while True:
            told = self.read()
            if any(w in told for w in wanted):
                return told
            self.told.append(told)

    def event(self, name):
        """The next event of that name; events before it are dropped. Times are the host's."""
        while True:
            told = self.line("event")
            if told["event"] == name:
                return self.host_times(told)

    def ask(self, command, member):
        self.tell(command)
        return self.host_times(self.line(member))

    def host_times(self, told):
        """Converts a moment of the guest's clock to seconds of the host's."""
        return {k: v / 1e9 + self.offset_s
                if k in MOMENTS and self.offset_s is not None and v else v
                for k, v in told.items()}

    def set_clock(self):
        """Of several pings the quickest says most."""
        best = None
        for _ in range(PINGS):
            start = time.monotonic()
            self.tell("ping")
            guest_s = self.line("now_ns")["now_ns"] / 1e9
            end = time.monotonic()
            if best is None or end - start < best:
                best = end - start
                self.offset_s = (start + end) / 2 - guest_s
        return best
