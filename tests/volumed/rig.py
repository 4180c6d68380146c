# SPDX-License-Identifier: GPL-2.0-or-later
"""A volume server in a folder of its own, with volumes of sparse files."""
import faulthandler
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN = os.environ.get("EBB_BIN", os.path.join(TOP, "build/host/bin"))
QEMU = os.path.join(TOP, "build/qemu/bin")
SIZE = 64 << 20
# Only a hang reaches it.
PATIENCE_S = 30
# So does a test that waits for something else without end; where it waits is printed.
HANG_S = 300


class VolumeCase(unittest.TestCase):
    """Starts and ends volume servers."""
    patience_s = PATIENCE_S

    def setUp(self):
        faulthandler.dump_traceback_later(HANG_S, exit=True, file=sys.stdout)
        self.dir = tempfile.mkdtemp(prefix="ebb-volumed-")
        self.nbd = os.path.join(self.dir, "run/nbd.sock")
        self.log_path = os.path.join(self.dir, "log")
        self.trace_path = ""    # none
        self.servers = []
        self.env = dict(os.environ, EBB_STORAGE_DAEMON=os.path.join(QEMU, "ebb-storage-daemon"))
        self.volumes = {}
        self.system = {}
        self.settings = {"direct": "no", "aio": "threads", "socket_group": ""}

    def tearDown(self):
        for server in self.servers:
            if server.poll() is None:
                server.kill()
                server.wait()
        # The storage daemon of a server that was killed ends by itself.
        shutil.rmtree(self.dir, ignore_errors=True)
        faulthandler.cancel_dump_traceback_later()

    # ---- the server ----

    def volume(self, name, tenant=None, **keys):
        path = os.path.join(self.dir, name + ".img")
        if not os.path.exists(path):
            with open(path, "wb") as f:
                f.truncate(SIZE)
        self.volumes[name] = dict({"tenant": tenant or "tenant-" + name, "file": path}, **keys)
        return path

    def configure(self):
        conf = os.path.join(self.dir, "conf")
        with open(conf, "w", encoding="utf-8") as f:
            f.write(f"run_dir = {self.dir}/run\nstate_dir = {self.dir}/state\n"
                    f"storage_daemon = {TOP}/scripts/harness/lab/slow-disk\n")
            for key, value in self.settings.items():
                f.write(f"{key} = {value}\n")
            sections = {f"volume {name}": keys for name, keys in self.volumes.items()}
            for name, keys in dict(sections, system=self.system).items():
                f.write(f"[{name}]\n")
                for key, value in keys.items():
                    f.write(f"{key} = {value}\n")
        return conf

    def launch(self, iops=0, faults=""):
        conf = self.configure()
        env = dict(self.env, EBB_DISK_IOPS=str(iops), EBB_DISK_FAULTS=faults,
                   EBB_DISK_TRACE=self.trace_path)
        with open(self.log_path, "ab") as log:
            server = subprocess.Popen([os.path.join(BIN, "ebb-volumed"), "-c", conf], env=env,
                                      stderr=log, stdout=log)
        self.servers.append(server)
        return server

    def start(self, iops=0, faults="", dies=0):
        """Start a server; its storage daemon comes up after so many that do not."""
        died = len(self.events("storage_daemon_died")) + dies if self.servers else dies
        server = self.launch(iops, faults)
        self.wait_until(self.is_up, "the server serves", server)
        # The next one would have the disk as it is, and not what `disk` makes of it.
        self.assertEqual(len(self.events("storage_daemon_died")), died, self.log())
        return server

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as f:
            return f.read()

    def events(self, name):
        return [line for line in self.log().splitlines() if f" event={name}" in line]

    def wait_until(self, what, words, server=None):
        until = time.monotonic() + self.patience_s
        while not what():
            if time.monotonic() > until:
                self.fail("does not happen: " + words + "\n" + self.log())
            if server and server.poll() is not None:
                self.fail("the server has ended\n" + self.log())
            time.sleep(0.02)

    def is_up(self):
        try:
            answer = self.ask("volumes")
        except OSError:
            return False
        return (answer["server"]["up"] and
                all(v["state"] in ("served", "failed") for v in answer["volumes"]))

    def stop(self, server):
        server.send_signal(signal.SIGTERM)
        self.assertEqual(server.wait(PATIENCE_S), 0, self.log())
        self.assertIn("exit status 0", self.events("storage_daemon_stopped")[-1])

    # ---- the control socket ----

    def ask(self, cmd, **members):
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(PATIENCE_S)
            s.connect(os.path.join(self.dir, "run/control.sock"))
            s.sendall(json.dumps(dict({"cmd": cmd}, **members)).encode() + b"\n")
            data = b""
            while not data.endswith(b"\n"):
                part = s.recv(65536)
                if not part:
                    raise ConnectionError("no answer")
                data += part
        return json.loads(data)

    def refused(self, code, cmd, **members):
        answer = self.ask(cmd, **members)
        self.assertFalse(answer["ok"], answer)
        self.assertEqual(answer["error"]["code"], code, answer)
        return answer["error"]["message"]

    def done(self, cmd, **members):
        answer = self.ask(cmd, **members)
        self.assertTrue(answer["ok"], answer)
        return answer

    def meters(self):
        answer = self.done("meters")
        self.assertEqual(answer["error"], "")
        return {m["name"]: m for m in answer["meters"]}

    def counted(self, seconds):
        """Return how much the counters of each volume grew in so many seconds, or a bit more."""
        before = self.meters()
        time.sleep(seconds)
        after = self.meters()
        return {name: {key: value - before[name]["counters"][key]
                       for key, value in m["counters"].items() if isinstance(value, int)}
                for name, m in after.items()}

    # ---- clients of QEMU ----

    def url(self, volume, **options):
        node = {"driver": "nbd", "export": volume, "server.type": "unix",
                "server.path": self.nbd}
        node.update({key.replace("_", "-"): value for key, value in options.items()})
        return ",".join(f"{key}={value}" for key, value in node.items())

    def qemu_io(self, volume, *commands, **options):
        args = [os.path.join(QEMU, "qemu-io"), "--image-opts"]
        for command in commands:
            args += ["-c", command]
        return subprocess.run(args + [self.url(volume, **options)], capture_output=True, text=True,
                              timeout=2 * PATIENCE_S)
