# SPDX-License-Identifier: GPL-2.0-or-later
"""The volume server of a scenario, and the disk below it.

The files are in memory, so that no other program's use of a real disk has an effect. A `throttle`
node below each volume (slow-disk) makes them one disk, which does so many requests per second: it
is the bottleneck, and nothing above it knows.
"""
import json
import os
import shutil
import socket
import subprocess
import time
from dataclasses import dataclass, field

from .lab import BUILD, MEMORY_DIR, TOP
from .process import SetupError, die_with_parent, end, run

START_S = 60            # it takes moments, but not on a machine that is busy
PATIENCE_S = 30
PREFIX = "ebb-volumes-"     # of folders, which end with the process that uses them


def remove_abandoned():
    """What runs have left that were killed."""
    for name in os.listdir(MEMORY_DIR):
        pid = name.removeprefix(PREFIX)
        if pid != name and pid.isdigit() and not os.path.exists(f"/proc/{pid}"):
            shutil.rmtree(os.path.join(MEMORY_DIR, name), ignore_errors=True)


@dataclass
class Volume:
    """keys: of its promise, see ebb-volumed.conf(5)."""
    name: str
    mib: int
    keys: dict = field(default_factory=dict)


def _server_process():
    """Before all other programs: the disk shall be the bottleneck, not the machine's few CPUs, on
    which the cores of an emulated host go before whatever has no priority."""
    die_with_parent()
    os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))


class VolumeServer:
    """ebb-volumed with its volumes. Use as a context, which removes all that it has made."""

    def __init__(self, log_dir, volumes, disk_iops, depth):
        self.log_path = os.path.join(log_dir, "ebb-volumed.log")
        self.dir = os.path.join(MEMORY_DIR, f"{PREFIX}{os.getpid()}")
        self.volumes = volumes
        self.disk_iops, self.depth = disk_iops, depth
        self.nbd = os.path.join(self.dir, "nbd.sock")
        self.control = os.path.join(self.dir, "control.sock")
        self.process = None

    def __enter__(self):
        remove_abandoned()
        for path in (self.dir, os.path.dirname(self.log_path)):
            os.makedirs(path, exist_ok=True)
        for volume in self.volumes:
            self._make(volume)
        env = dict(os.environ, EBB_DISK_IOPS=str(self.disk_iops), EBB_STORAGE_DAEMON=os.path.join(
            BUILD, "qemu", "bin", "ebb-storage-daemon"))
        with open(self.log_path, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                [os.path.join(BUILD, "host", "bin", "ebb-volumed"), "-c", self._configure()],
                env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                preexec_fn=_server_process)
        try:
            self._wait()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if self.process:
            end(self.process)
        shutil.rmtree(self.dir, ignore_errors=True)

    def _path(self, volume):
        return os.path.join(self.dir, volume.name + ".img")

    def _make(self, volume):
        path = self._path(volume)
        with open(path, "wb") as f:
            f.truncate(volume.mib << 20)
        # Without a journal: nothing on it is worth more than the run.
        run(["/sbin/mkfs.ext4", "-q", "-F", "-O", "^has_journal", "-E", "nodiscard", path])

    def _configure(self):
        path = os.path.join(self.dir, "conf")
        settings = {"run_dir": self.dir, "state_dir": self.dir, "socket_group": "",
                    "storage_daemon": os.path.join(TOP, "scripts/harness/lab/slow-disk"),
                    # Files in memory; and whether one may promise too much is for the scenario.
                    "direct": "no", "aio": "threads", "allow_overbooking": "yes",
                    "depth": self.depth}
        with open(path, "w", encoding="utf-8") as f:
            for key, value in settings.items():
                f.write(f"{key} = {value}\n")
            for volume in self.volumes:
                f.write(f"[volume {volume.name}]\ntenant = {volume.name}\n"
                        f"file = {self._path(volume)}\n")
                for key, value in volume.keys.items():
                    f.write(f"{key} = {value}\n")
        return path

    def _wait(self):
        end_at = time.monotonic() + START_S
        while time.monotonic() < end_at:
            if self.process.poll() is not None:
                raise SetupError(f"ebb-volumed ended with status {self.process.returncode}, see "
                                 f"{self.log_path}")
            try:
                told = self.ask("volumes")
                if told["server"]["up"] and all(v["state"] == "served" for v in told["volumes"]):
                    return
            except OSError:
                pass
            time.sleep(0.05)
        raise SetupError(f"ebb-volumed does not serve, see {self.log_path}")

    def ask(self, cmd, **members):
        """The answer to a request on the control socket (docs/volume-protocol.md)."""
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(PATIENCE_S)
            s.connect(self.control)
            s.sendall(json.dumps({"cmd": cmd, **members}).encode() + b"\n")
            data = b""
            while not data.endswith(b"\n"):
                part = s.recv(65536)
                if not part:
                    raise OSError("no answer")
                data += part
        answer = json.loads(data)
        if not answer["ok"]:
            raise SetupError(f"ebb-volumed: {cmd}: {answer['error']['message']}")
        return answer

    def promise(self, volume, **keys):
        """Changes what a volume is promised, as the operator; None: no more of that. The promise
        is in force when this returns."""
        run([os.path.join(BUILD, "host", "bin", "ebbctl"), "volumes", "--socket", self.control,
             "set", volume, *(f"{key}={'none' if value is None else value}"
                              for key, value in keys.items())])
