# SPDX-License-Identifier: GPL-2.0-or-later
"""oltp-load and what it talks to, in a folder of its own."""
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

from nodes import Nodes

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN = os.environ.get("EBB_BIN", os.path.join(TOP, "build/host/bin"))
# Only a hang reaches it.
PATIENCE_S = 60
# Nor these of oltp-load, so that no request fails because the machine is busy.
PATIENT = [f"--{name}-ms={PATIENCE_S * 1000}" for name in ("wait", "open", "answer")]
ROWS = 1000


class LoadCase(unittest.TestCase):
    """Starts and ends servers and oltp-load."""

    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="ebb-load-")
        self.processes = []
        self.nodes = None

    def tearDown(self):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.communicate()
        self.stop_nodes()
        shutil.rmtree(self.dir, ignore_errors=True)

    def path(self, name):
        return os.path.join(self.dir, name)

    def wait_until(self, condition, what):
        end = time.monotonic() + PATIENCE_S
        while not condition():
            self.assertLess(time.monotonic(), end, what)
            time.sleep(0.01)

    def redis(self, *options):
        """Start a redis-server on a unix socket; return its address and its process."""
        # One program is all of these, and its name says which one it is. The package redis-server,
        # which has that name, would start a server whenever the machine boots.
        program = self.path("redis-server")
        if not os.path.islink(program):
            os.symlink(shutil.which("redis-check-rdb"), program)
        socket = self.path("redis.sock")
        server = subprocess.Popen(
            [program, "--port", "0", "--unixsocket", socket, "--save", "", "--dir", self.dir,
             *options], stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT)
        self.processes.append(server)
        self.wait_until(lambda: os.path.exists(socket), "redis-server listens")
        return "unix:" + socket, server

    def redis_cli(self, address, *words):
        return subprocess.run(["redis-cli", "-s", address.removeprefix("unix:"), *words],
                              check=True, capture_output=True, text=True,
                              timeout=PATIENCE_S).stdout

    def stop_nodes(self):
        if self.nodes:
            self.nodes.stop()
        self.nodes = None

    def start_nodes(self, n=2):
        """Start a database of n nodes in place of the one before; return them."""
        self.stop_nodes()
        self.nodes = Nodes(*(self.path(f"node{i}.sock") for i in range(n)))
        return self.nodes.nodes

    def start(self, *options):
        load = subprocess.Popen([os.path.join(BIN, "oltp-load"), "--rows", str(ROWS), *PATIENT,
                                 *options],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.processes.append(load)
        return load

    def end(self, load, status=0):
        """Return the lines and what was said on stderr, when it has ended with that status."""
        out, said = load.communicate(timeout=PATIENCE_S)
        self.assertEqual(load.returncode, status, out + said)
        return [json.loads(line) for line in out.splitlines()], said

    def interrupt(self, load, status=0):
        """End the run; return its lines."""
        load.send_signal(signal.SIGINT)
        lines, _ = self.end(load, status)
        self.assertEqual(lines[-1]["type"], "summary")
        return lines

    def run_load(self, *options, status=0):
        lines, _ = self.end(self.start(*options), status)
        self.assertEqual(lines[-1]["type"], "summary")
        return lines

    def assert_sums(self, lines):
        """The seconds add up to the summary, and every request came to one end."""
        *seconds, summary = lines
        for name in ("arrived", "sent", "repeated", "failures", "moves"):
            self.assertEqual(sum(line[name] for line in seconds), summary[name], name)
        for name in summary["failed"]:
            self.assertEqual(sum(line["failed"][name] for line in seconds),
                             summary["failed"][name], name)
        self.assertEqual(sum(line["all"]["done"] for line in seconds), summary["all"]["done"])
        self.assertEqual(sum(node["done"] for node in summary["nodes"].values()),
                         summary["all"]["done"])
        self.assertEqual(sum(summary["failed"].values()), summary["failures"])
        self.assertEqual(summary["arrived"], summary["all"]["done"] + summary["failures"])
        self.assertEqual((summary["queue"], summary["under_way"]), (0, 0))
