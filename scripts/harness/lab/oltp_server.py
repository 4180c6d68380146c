# SPDX-License-Identifier: GPL-2.0-or-later
"""oltp-server, a node of a database, and oltp-load, its clients, as processes on this machine.

docs/relocation.md and the manual pages say what they obey and print.
"""
import json
import os
import signal
import socket
import subprocess
import threading
import time

from .lab import BUILD
from .process import SetupError, die_with_parent, end

START_S = 60            # it takes moments, but not on a machine that is busy
ANSWER_S = 20
INFO_S = 2
END_S = 30
VERIFY_S = 180          # all rows are read, perhaps from a slow disk
# A connection of that name is no client: no node counts it, tells it to move or closes it.
OBSERVER = "ebb-observer"


def _program(name):
    return os.path.join(BUILD, "host", "bin", name)


def _started(args, log_path, cpus, **more):
    """cpus: on which all threads of the program stay."""
    def prepare():
        die_with_parent()
        os.sched_setaffinity(0, cpus)
    with open(log_path, "ab") as log:
        return subprocess.Popen(args, stdin=subprocess.DEVNULL, stderr=log,
                                start_new_session=True, preexec_fn=prepare,
                                **{"stdout": log, **more})


class Node:
    """A server with a folder of its own, in which its sockets and its files are. Use as a
    context."""

    def __init__(self, name, folder, log_dir, cpu, *options, memory_mib=0, volume=None):
        """memory_mib: for records, the others are on disk; 0: no bound. volume: where its log,
        checkpoints and records on disk are, instead of in its folder."""
        self.name, self.folder, self.cpu, self.options = name, folder, cpu, list(options)
        self.options += ["--volume", volume] if volume else ["--log-dir", f"{folder}/log"]
        if memory_mib:
            self.options += ["--memory-mib", str(memory_mib),
                             *(["--cold-volume"] if volume else ["--cold-dir", f"{folder}/cold"])]
        self.log_path = os.path.join(log_dir, name + ".log")
        self.address = f"unix:{folder}/clients"
        self.process = None

    def launch(self):
        """Starts the process; __enter__ also waits until it serves."""
        for part in ("log", "cold"):
            os.makedirs(os.path.join(self.folder, part))
        self.process = _started(
            [_program("oltp-server"), "--cpus", str(self.cpu), "--quiet", "--unix",
             f"{self.folder}/clients", "--control", f"{self.folder}/control", "--durability",
             "commit", *self.options], self.log_path, {self.cpu})

    def __enter__(self):
        self.launch()
        end_at = time.monotonic() + START_S
        while True:
            try:
                # Anything that it answers: it is there.
                self._say("?")
                return self
            except OSError:
                pass
            if self.process.poll() is not None or time.monotonic() > end_at:
                self.__exit__()
                raise SetupError(f"oltp-server {self.name} does not serve, see {self.log_path}")
            time.sleep(0.05)

    def __exit__(self, *_):
        if self.process:
            end(self.process, END_S)

    @property
    def pid(self):
        """Whose CPU time is the node's."""
        return self.process.pid

    def _say(self, line):
        """The answer to a line on the control socket."""
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(ANSWER_S)
            s.connect(f"{self.folder}/control")
            s.sendall(line.encode() + b"\n")
            return s.makefile(encoding="utf-8").readline().strip()

    def relocate(self, node, clients, how):
        """Tells the database to move; SetupError if it does not. node: where the target waits;
        clients: its address for clients; how: the words behind these."""
        answer = self._say(f"relocate {node} {clients} {how}")
        if answer != "ok":
            raise SetupError(f"{self.name}: relocate: {answer}")

    def status(self):
        """The answer to relocate-status."""
        return json.loads(self._say("relocate-status"))

    def connect(self):
        """A socket on which it takes commands of clients."""
        s = socket.socket(socket.AF_UNIX)
        s.connect(f"{self.folder}/clients")
        return s


class Refused(OSError):
    """A node answered with an error."""


class Observer:
    """Asks a node, also while it lets no clients in, over a connection that is there before."""

    def __init__(self, connect, patience_s=INFO_S):
        """connect: () -> a connected socket."""
        self.connect, self.patience_s, self.socket, self.lines = connect, patience_s, None, None

    def command(self, *words):
        """The text that is answered. OSError: none, or an error."""
        try:
            if not self.socket:
                self.socket = self.connect()
                self.socket.settimeout(self.patience_s)
                self.lines = self.socket.makefile("rb")
                try:
                    self._exchange("CLIENT", "SETNAME", OBSERVER)
                except Refused:
                    # A node that its clients leave may answer nothing but RELOCATE.
                    pass
            return self._exchange(*words)
        except OSError:
            self.close()
            raise

    def _exchange(self, *words):
        self.socket.sendall(f"*{len(words)}\r\n".encode() + b"".join(
            f"${len(word.encode())}\r\n{word}\r\n".encode() for word in words))
        head = self.lines.readline()
        if head.startswith(b"+"):
            return head[1:].decode().strip()
        if head.startswith(b"-"):
            raise Refused(f"{words[0]}: {head[1:].decode().strip()}")
        if not head.startswith(b"$"):
            raise OSError(f"{words[0]}: answered {head!r}")
        return self.lines.read(int(head[1:]) + 2)[:-2].decode()

    def info(self):
        """{name: text}; None: the node does not answer."""
        try:
            text = self.command("INFO")
        except OSError:
            return None
        return dict(line.split(":", 1) for line in text.splitlines() if ":" in line)

    def close(self):
        if self.lines:
            self.lines.close()
        if self.socket:
            self.socket.close()
        self.socket = self.lines = None


class Load(threading.Thread):
    """oltp-load. Its lines are read as they come; start() begins, finish() ends it."""

    def __init__(self, name, log_dir, cpus, addresses, *options, prefix=(), loads=True):
        """prefix: words before the command, such as those that change to another network.

        loads: stores all rows first, and checks the counters in the end."""
        super().__init__(name=name, daemon=True)
        self.log_path = os.path.join(log_dir, name + ".log")
        self.rows, self.summary, self.begun_at = [], None, None
        self.process = _started(
            [*prefix, _program("oltp-load"), "--connect", ",".join(addresses),
             *(("--load", "--verify") if loads else ()), *options], self.log_path, cpus,
            stdout=subprocess.PIPE)

    def run(self):
        for line in self.process.stdout:
            now = time.monotonic()
            try:
                row = json.loads(line)
            except ValueError:
                continue
            if row["type"] == "summary":
                self.summary = row
                continue
            # A line comes at the end of its second, or later.
            begun_at = now - row["t_s"]
            self.begun_at = begun_at if self.begun_at is None else min(self.begun_at, begun_at)
            self.rows.append(row)

    def wait_for(self, seconds, patience_s):
        """Until it has run for so long; the loading phase comes first."""
        end_at = time.monotonic() + patience_s
        while not self.rows or self.rows[-1]["t_s"] < seconds:
            if self.process.poll() is not None or time.monotonic() > end_at:
                raise SetupError(f"oltp-load does not run, see {self.log_path}")
            time.sleep(0.05)

    def finish(self):
        """Ends the run, and returns the summary."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(VERIFY_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.join(END_S)
        if self.summary is None:
            raise SetupError(f"oltp-load gave no summary, see {self.log_path}")
        return self.summary

    def kill(self):
        """For a run that failed."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
