# SPDX-License-Identifier: GPL-2.0-or-later
"""A VM of a benchmark: its measuring program and the line to it.

The program (tests/vm/guest/ebb-*bench.c) obeys commands, one to a line, and answers with JSON.
"""
import json
import os
import re
import socket

from harness.lab import domain
from harness.lab.process import SetupError
from tests.vm import rig

QUOTA_PERIOD_US = 10000


class Refused(Exception):
    """The guest's program could not do what it was told."""


def without_ebb(text):
    """The domain as text, such that the agent leaves it alone. libvirt then gives each vCPU thread
    what a core of the emulated host gives."""
    text = re.sub(r"<metadata>.*</metadata>", "", text, flags=re.S)
    quota = int(QUOTA_PERIOD_US * float(rig.lab().host_spec.partition("@")[2]))
    return text.replace("<os>", f"<cputune><period>{QUOTA_PERIOD_US}</period>"
                                f"<quota>{quota}</quota></cputune><os>")


class MeasuredVm:
    """A guest (tests/vm/rig.py) and the line to its program."""

    def __init__(self, guest):
        self.guest = guest

    def path(self, what):
        """Of a socket of this VM."""
        return os.path.join(rig.lab().console_dir, f"{self.guest.vm.name}.{what}")

    def with_channel(self, text):
        """The domain as text, with the line."""
        channel = (f"<channel type='unix'><source mode='bind' path='{self.path('bench')}'/>"
                   f"<target type='virtio' name='ebb.bench'/></channel>")
        return text.replace("</devices>", channel + "</devices>")

    def begin(self, program, patience_s):
        """Starts the program in a guest that runs; patience_s: longest wait for an answer."""
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(self.path("bench"))
        self.socket.settimeout(patience_s)
        self.lines = self.socket.makefile("r")
        self.guest.begin(f"/ebb/tests/{program} /dev/vport*p1")

    def tell(self, command):
        self.socket.sendall(command.encode() + b"\n")

    def read(self):
        """The next object that the program says."""
        text = self.lines.readline()
        if not text:
            raise SetupError(f"the measuring program in {self.guest.vm.name} ended, see "
                             f"{domain.console_path(self.guest.boot, self.guest.vm)}")
        told = json.loads(text)
        if "error" in told:
            raise Refused(f"{self.guest.vm.name}: {told['command']}: {told['error']}")
        return told

    def close(self):
        splats = self.guest.splats()
        self.socket.close()
        self.guest.remove()
        if splats:
            raise SetupError(f"kernel log of {self.guest.vm.name}: {splats}")
