# SPDX-License-Identifier: GPL-2.0-or-later
"""One virsh that obeys line by line, so that its start is in no measurement."""
import subprocess
import time


class Virsh:
    def __init__(self, uri):
        self.p = subprocess.Popen(["virsh", "-q", "-c", uri], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def timed(self, command):
        """Milliseconds that a command took; it must say nothing but be done."""
        start = time.monotonic()
        self.p.stdin.write(f"{command}\necho ebb-done\n")
        self.p.stdin.flush()
        said = []
        while True:
            line = self.p.stdout.readline()
            if not line:
                raise RuntimeError(f"virsh ended: {said}")
            if line.strip().endswith("ebb-done"):
                break
            if "error" in line:
                said.append(line.strip())
        if said:
            raise RuntimeError(f"{command}: {said}")
        return (time.monotonic() - start) * 1000

    def close(self):
        self.p.stdin.close()
        self.p.wait()
