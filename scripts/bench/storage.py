# SPDX-License-Identifier: GPL-2.0-or-later
"""A storage daemon that serves disks over NBD as ebb-volumed's does, with any filter above them."""
import json
import os
import re
import socket
import subprocess
import time

from harness.lab.lab import BUILD
from harness.lab.process import SetupError, die_with_parent, end

BIN = os.path.join(BUILD, "qemu", "bin")
START_S = 60


def disk_in_memory(path):
    """The description of a file, which is to be in memory."""
    return {"driver": "file", "filename": path, "cache": {"direct": False}, "aio": "threads",
            "discard": "unmap"}


class StorageDaemon:
    """Use as a context. volumes: {export: description of a node without its name}; objects:
    what QEMU is to have besides, as QOM's properties."""

    def __init__(self, folder, volumes, objects=()):
        self.folder, self.volumes, self.objects = folder, volumes, objects
        self.nbd = os.path.join(folder, "nbd.sock")
        self.control = os.path.join(folder, "qmp.sock")
        self.process = self.qmp_file = None

    def __enter__(self):
        os.makedirs(self.folder, exist_ok=True)
        log = os.path.join(self.folder, "log")
        with open(log, "w", encoding="utf-8") as out:
            self.process = subprocess.Popen(self._args(), stdin=subprocess.DEVNULL, stdout=out,
                                            stderr=out, preexec_fn=die_with_parent)
        try:
            self._connect()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if self.qmp_file:
            self.qmp_file.close()
        if self.process:
            end(self.process)

    def _args(self):
        args = [os.path.join(BIN, "ebb-storage-daemon"),
                "--chardev", f"socket,id=qmp,path={self.control},server=on,wait=off",
                "--monitor", "chardev=qmp", "--object", "iothread,id=io",
                "--nbd-server", f"addr.type=unix,addr.path={self.nbd},max-connections=1000"]
        for o in self.objects:
            args += ["--object", json.dumps(o)]
        for i, (name, node) in enumerate(self.volumes.items()):
            args += ["--blockdev", json.dumps({**node, "node-name": f"v{i}"}),
                     "--export", f"nbd,id=e{i},node-name=v{i},name={name},iothread=io,"
                                 "fixed-iothread=on"]
        return args

    def _connect(self):
        end_at = time.monotonic() + START_S
        while time.monotonic() < end_at and self.process.poll() is None:
            s = socket.socket(socket.AF_UNIX)
            s.settimeout(START_S)
            try:
                s.connect(self.control)
            except OSError:
                s.close()
                time.sleep(0.02)
                continue
            self.qmp_file = s.makefile("rw", encoding="utf-8")
            s.close()
            json.loads(self.qmp_file.readline())
            # Answered when all that the command line says is done.
            self.ask("qmp_capabilities")
            return
        raise SetupError(f"the storage daemon does not serve, see {self.folder}/log")

    def ask(self, command, **arguments):
        self.qmp_file.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
        self.qmp_file.flush()
        while True:
            line = self.qmp_file.readline()
            answer = json.loads(line) if line else {"error": {"desc": "it has ended"}}
            if "error" in answer:
                raise SetupError(f"storage daemon: {command}: {answer['error']['desc']}")
            if "return" in answer:
                return answer["return"]

    def cpu_s(self):
        """CPU time of all its threads so far, also of those that have ended."""
        # The kernel's number of another process's CPU clock (clock_getcpuclockid(3)).
        return time.clock_gettime((~self.process.pid << 3) | 2)


class Client:
    """qemu-img bench, which keeps `depth` requests of 4 KiB to read open until it has done so many.
    A server takes at most 16 at a time from a client."""

    def __init__(self, url, count, depth):
        self.process = subprocess.Popen(
            [os.path.join(BIN, "qemu-img"), "bench", "--image-opts", "-c", str(count),
             "-d", str(depth), "-s", "4096", url], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, text=True, preexec_fn=die_with_parent)

    def finish(self):
        """Return (seconds that the requests took, CPU seconds of the client)."""
        with self.process as p:
            told = p.stdout.read()
            _, status, usage = os.wait4(p.pid, 0)
            p.returncode = os.waitstatus_to_exitcode(status)
        seconds = re.search(r"Run completed in ([0-9.]+) seconds", told)
        if p.returncode != 0 or not seconds:
            raise SetupError(f"qemu-img bench ended with status {p.returncode}")
        return float(seconds.group(1)), usage.ru_utime + usage.ru_stime


def url(daemon, export):
    return f"driver=nbd,export={export},server.type=unix,server.path={daemon.nbd}"
