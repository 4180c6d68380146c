# SPDX-License-Identifier: GPL-2.0-or-later
"""A VM of bench-cpu: its measuring program (tests/vm/guest/ebb-cpubench.c) and a line to it.

Guests have clocks of their own. What one says of its clock is turned into time.monotonic() of the
host with the offset that the quickest of some pings shows, measured anew in each round: emulated
guests see the host's time stamp counter, so that within a round nothing drifts.
"""
import json
import os
import re
import socket
import time

from harness.lab import domain
from harness.lab.process import SetupError
from tests.vm import rig

PINGS = 8
PATIENCE_S = 30
QUOTA_PERIOD_US = 10000


class Refused(Exception):
    """The guest's program could not do what it was to do."""


class CpuVm:
    """One CPU to start with and one that comes and goes."""

    def __init__(self, name, is_stock=False, **more):
        monitor = {"monitor": 0, "module": 0} if is_stock else {}
        self.is_stock = is_stock
        self.guest = rig.Guest(name, cells=((2, 1),),
                               options={"modules": "virtio_console", **monitor}, **more)
        self.channel = os.path.join(rig.lab().console_dir, f"{name}.bench")
        self.guest.define(self.edit)
        self.offset_s = None
        self.told = []          # events that came before they were waited for

    def start(self):
        self.guest.start(driver=not self.is_stock)
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(self.channel)
        self.socket.settimeout(PATIENCE_S)
        self.lines = self.socket.makefile("r")
        self.guest.begin("/ebb/tests/ebbt-cpubench /dev/vport*p1")
        self.line("ready")
        return self

    def edit(self, text):
        """The channel; without Ebb also what the agent gives a core of the emulated host."""
        channel = (f"<channel type='unix'><source mode='bind' path='{self.channel}'/>"
                   f"<target type='virtio' name='ebb.bench'/></channel>")
        text = text.replace("</devices>", channel + "</devices>")
        if not self.is_stock:
            return text
        share = float(rig.lab().host_spec.partition("@")[2])
        text = re.sub(r"<metadata>.*</metadata>", "", text, flags=re.S)
        return text.replace("<os>", f"<cputune><period>{QUOTA_PERIOD_US}</period><quota>"
                                    f"{int(QUOTA_PERIOD_US * share)}</quota></cputune><os>")

    @property
    def name(self):
        return self.guest.domain

    def line(self, *wanted):
        """The next object that has one of these members; events that do not are kept."""
        for i, told in enumerate(self.told):
            if any(w in told for w in wanted):
                return self.told.pop(i)
        while True:
            text = self.lines.readline()
            if not text:
                raise SetupError(f"the measuring program in {self.guest.vm.name} ended, see "
                                 f"{domain.console_path(self.guest.boot, self.guest.vm)}")
            told = json.loads(text)
            if "error" in told:
                raise Refused(f"{self.guest.vm.name}: {told['command']}: {told['error']}")
            if any(w in told for w in wanted):
                return told
            self.told.append(told)

    def event(self, name):
        """The next event of that name; what came before it is dropped. Times are the host's."""
        while True:
            told = self.line("event")
            if told["event"] == name:
                return self.host_times(told)

    def tell(self, command):
        self.socket.sendall(command.encode() + b"\n")

    def ask(self, command, member):
        self.tell(command)
        return self.host_times(self.line(member))

    def host_times(self, told):
        """What is a moment of the guest's clock, as seconds of the host's."""
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

    def close(self):
        splats = self.guest.splats()
        self.socket.close()
        self.guest.remove()
        if splats:
            raise SetupError(f"kernel log of {self.guest.vm.name}: {splats}")


MOMENTS = ("told_ns", "stopped_ns", "given_ns", "added_ns", "first_ns", "deadline_ns",
           "offline_ns")
