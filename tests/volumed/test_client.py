# SPDX-License-Identifier: GPL-2.0-or-later
"""QEMU as a client of a volume server: what VMs send is what their guests want."""
import os
import shutil
import socket
import struct
import subprocess
import tempfile
import threading
import time
import unittest

from harness.lab import nbd
from rig import QEMU, SIZE

REQUESTS, DEPTH = 100, 48
ANSWER_S = 0.005            # in which the client has done all that it can
MOST = 16                   # requests that QEMU's client has outstanding
PATIENCE_S = 5
OPTION_REPLY, UNKNOWN = 0x3E889045565A9, (1 << 31) | 1


class Server(threading.Thread):
    """A server that answers a request once it has as many as the client may send. has: how many
    it had when no more came."""

    def __init__(self, path):
        super().__init__(daemon=True)
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen(1)
        self.socket, self.answered, self.has = None, 0, MOST

    def run(self):
        self.socket, _ = self.listener.accept()
        with self.listener, self.socket:
            self.greet()
            self.serve()

    def greet(self):
        self.socket.sendall(nbd.MAGIC + nbd.OPT_MAGIC + struct.pack(">H", 1))
        nbd.receive(self.socket, 4)
        while True:
            _, option, length = struct.unpack(">QII", nbd.receive(self.socket, 16))
            nbd.receive(self.socket, length)
            if option == nbd.OPT_GO:
                self.option(option, nbd.REP_INFO, struct.pack(">HQH", 0, SIZE, 1))
                self.option(option, nbd.REP_ACK)
                return
            self.option(option, UNKNOWN)

    def option(self, option, kind, data=b""):
        self.socket.sendall(struct.pack(">QIII", OPTION_REPLY, option, kind, len(data)) + data)

    def serve(self):
        waiting = []
        while self.answered < REQUESTS:
            most = min(MOST, REQUESTS - self.answered)
            self.socket.settimeout(PATIENCE_S)
            try:
                while len(waiting) < most:
                    magic, _, kind, cookie, _, length = struct.unpack(
                        ">IHHQQI", nbd.receive(self.socket, 28))
                    if magic != nbd.REQUEST_MAGIC or kind != nbd.CMD_READ:
                        return
                    waiting.append((cookie, length))
            except TimeoutError:
                self.has = len(waiting)
                return
            time.sleep(ANSWER_S)
            cookie, length = waiting.pop(0)
            self.socket.sendall(struct.pack(">IIQ", nbd.REPLY_MAGIC, 0, cookie) + bytes(length))
            self.answered += 1


class Client(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="ebb-volumed-")

    def tearDown(self):
        shutil.rmtree(self.dir, ignore_errors=True)

    def test_next_request_does_not_wait_for_all_others(self):
        path = os.path.join(self.dir, "nbd")
        server = Server(path)
        server.start()
        subprocess.run([os.path.join(QEMU, "qemu-img"), "bench", "-f", "raw", "-t", "none",
                        "-c", str(REQUESTS), "-d", str(DEPTH), "-s", "1024", "-S", "65536",
                        f"nbd+unix:///?socket={path}"], stdout=subprocess.DEVNULL, timeout=120,
                       check=False)
        server.join()
        self.assertEqual((server.has, server.answered), (MOST, REQUESTS))
