# SPDX-License-Identifier: GPL-2.0-or-later
"""Versions of the programs that take part in a run."""
import os
import sys

from .lab import BUILD, SERIES, TOP
from .process import run


def _first_line(args):
    return run(args, check=False).strip().split("\n")[0]


def of_programs():
    """Of what takes part without a VM."""
    return {"ebb": _first_line(["git", "-C", TOP, "describe", "--always", "--dirty"]) or "unknown",
            "host_kernel": os.uname().release, "python": sys.version.split()[0]}


def of_lab(lab):
    """The same, with QEMU, the lab's libvirt and the guest's kernel."""
    with open(os.path.join(BUILD, "guest", SERIES, "version"), encoding="ascii") as f:
        guest = f.read().strip()
    qemu = os.path.join(BUILD, "qemu", "bin", "qemu-system-x86_64-ebb")
    return {**of_programs(),
            "qemu": _first_line([qemu, "--version"]).removeprefix("QEMU emulator version "),
            "libvirt": _first_line(["virsh", "-c", lab.uri, "-v"]), "guest_kernel": guest}
