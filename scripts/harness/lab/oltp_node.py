# SPDX-License-Identifier: GPL-2.0-or-later
"""oltp-node (its manual page says what it obeys) as a process on this machine."""
import json
import os
import selectors
import signal
import subprocess
import time

from .lab import BUILD
from .process import SetupError, die_with_parent

PATIENCE_S = 60


def parse(prefix, line):
    """The object behind the prefix of a line; SetupError if it is not one."""
    try:
        return json.loads(line[len(prefix):])
    except ValueError:
        raise SetupError(f"oltp-node: not understood: {line!r}") from None


class Node:
    """Started when made; ask() sends a line and waits for its answer."""

    def __init__(self, log_path, *args):
        self.name = " ".join(args)
        with open(log_path, "a", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                [os.path.join(BUILD, "host", "bin", "oltp-node"), *args], stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=log, text=True, bufsize=1, start_new_session=True,
                preexec_fn=die_with_parent)
        self.wait("oltp-node: ready")

    def tell(self, line):
        try:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
        except OSError:
            raise SetupError(f"oltp-node {self.name} has ended") from None

    def wait(self, prefix, patience_s=PATIENCE_S):
        """The next line; it must begin with the prefix."""
        with selectors.DefaultSelector() as s:
            s.register(self.process.stdout, selectors.EVENT_READ)
            if not s.select(patience_s):
                raise SetupError(f"oltp-node {self.name} does not answer")
        line = self.process.stdout.readline().strip()
        if not line.startswith(prefix):
            raise SetupError(f"oltp-node {self.name} said {line!r}, not {prefix!r}")
        return line

    def result(self, prefix, patience_s=PATIENCE_S):
        return parse(prefix, self.wait(prefix, patience_s))

    def audit(self):
        self.tell("audit")
        return self.result("oltp-node-audit ")

    def settled(self, patience_s=10):
        """Waits until nothing is in doubt or unconfirmed; the node's figures."""
        end = time.monotonic() + patience_s
        while True:
            self.tell("stats")
            stats = self.result("oltp-node-stats ")
            if not stats["in_doubt"] + stats["unconfirmed"] or time.monotonic() > end:
                return stats
            time.sleep(0.05)

    def end(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(5)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()
