# SPDX-License-Identifier: GPL-2.0-or-later
"""The console of a VM, on which its engine says how it is doing."""
import os
import re

STATISTICS = re.compile(r"oltp: t=\S+ workers=")


class Console:
    """The lines that a VM's console has got since the last look."""

    def __init__(self, path):
        self.path, self.at, self.rest = path, 0, ""

    def skip(self):
        if os.path.exists(self.path):
            self.at, self.rest = os.path.getsize(self.path), ""

    def rewind(self):
        """The file begins anew."""
        self.at, self.rest = 0, ""

    def lines(self):
        try:
            with open(self.path, "rb") as f:
                f.seek(self.at)
                data = f.read()
        except FileNotFoundError:
            return []
        self.at += len(data)
        *whole, self.rest = (self.rest + data.decode("utf-8", "replace")).split("\n")
        return [line.rstrip("\r") for line in whole]


def statistics(line):
    """The whole numbers of a line of statistics, by name."""
    return {k: int(v) for k, v in re.findall(r"\b(\w+)=(\d+)(?= |$)", line)}
