# SPDX-License-Identifier: GPL-2.0-or-later
"""How much of a VM's pools is really backed by memory of the host: /proc/<QEMU>/smaps.

What the agent says a VM holds is a promise; this is what the host's kernel counts. The address of a
pool in QEMU's address space comes from QEMU itself (`info ramblock`).
"""
import os
import re

_MAPPING = re.compile(r"^([0-9a-f]+)-([0-9a-f]+) ")
_BLOCK = re.compile(r"^\s*(\S+)\s+\d+ \S+\s+0x[0-9a-f]+\s+0x[0-9a-f]+\s+0x([0-9a-f]+)\s+"
                    r"0x([0-9a-f]+)", re.M)


def ram_blocks(text):
    """{name: (begin, end)} in QEMU's address space, from the words of `info ramblock`."""
    found = {}
    for name, total, address in _BLOCK.findall(text):
        begin = int(address, 16)
        found[name] = (begin, begin + int(total, 16))
    return found


def rss_bytes(smaps, ranges):
    """Resident bytes of the mappings that lie in one of the address ranges."""
    total, inside = 0, False
    for line in smaps:
        mapping = _MAPPING.match(line)
        if mapping:
            begin, end = (int(x, 16) for x in mapping.groups())
            inside = any(low <= begin and end <= high for low, high in ranges)
        elif inside and line.startswith("Rss:"):
            total += int(line.split()[1]) * 1024
    return total


def qemu_pid(uuid):
    """The process of the VM with this UUID, None if it does not run."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                words = f.read().split(b"\0")
        except OSError:
            continue
        if b"-uuid" in words[:-1] and words[words.index(b"-uuid") + 1] == uuid.encode():
            return int(pid)
    return None


class PoolMeter:
    """The resident memory of a VM's pools, or of whatever RAM blocks `is_wanted(name)` picks."""

    def __init__(self, pid, ramblock_text, is_wanted=lambda name: "ebb-pool" in name):
        self.pid = pid
        blocks = ram_blocks(ramblock_text)
        self.ranges = [span for name, span in blocks.items() if is_wanted(name)]
        if not self.ranges:
            raise ValueError(f"no pool among QEMU's RAM blocks {sorted(blocks)}")

    def read(self):
        """Bytes now; None when QEMU is gone."""
        try:
            with open(f"/proc/{self.pid}/smaps", encoding="ascii", errors="replace") as f:
                return rss_bytes(f, self.ranges)
        except OSError:
            return None
