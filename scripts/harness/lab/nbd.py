# SPDX-License-Identifier: GPL-2.0-or-later
"""A small NBD client: as much of the protocol as tests and scenarios need, and as little care."""
import socket
import struct
import threading

MAGIC = b"NBDMAGIC"
OPT_MAGIC = b"IHAVEOPT"
OPT_EXPORT_NAME, OPT_GO = 1, 7
REP_ACK, REP_INFO = 1, 3
CMD_READ, CMD_WRITE, CMD_DISC, CMD_FLUSH, CMD_TRIM, CMD_ZEROES = 0, 1, 2, 3, 4, 6
REQUEST_MAGIC, REPLY_MAGIC = 0x25609513, 0x67446698


class Refused(Exception):
    """The server does not have the export."""


def connect(path):
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(30)
    s.connect(path)
    return s


def receive(s, length):
    data = b""
    while len(data) < length:
        part = s.recv(length - len(data))
        if not part:
            raise ConnectionError("closed by the server")
        data += part
    return data


def negotiate(s, export):
    greeting = receive(s, 18)
    if greeting[:16] != MAGIC + OPT_MAGIC:
        raise ConnectionError("no NBD server")
    name = export.encode()
    option = struct.pack(">I", len(name)) + name + struct.pack(">H", 0)
    # Fixed newstyle, without the 124 zeroes.
    s.sendall(struct.pack(">I", 3) + OPT_MAGIC + struct.pack(">II", OPT_GO, len(option)) + option)
    while True:
        _, _, kind, length = struct.unpack(">QIII", receive(s, 20))
        data = receive(s, length)
        if kind == REP_ACK:
            return
        if kind != REP_INFO:
            raise Refused(data.decode(errors="replace"))


class Client:
    """One connection with requests one after the other."""

    def __init__(self, path, export):
        self.socket = connect(path)
        negotiate(self.socket, export)
        self.cookie = 0

    def send(self, command, offset=0, length=0, data=b""):
        self.cookie += 1
        self.socket.sendall(struct.pack(">IHHQQI", REQUEST_MAGIC, 0, command, self.cookie, offset,
                                        length) + data)

    def answer(self, length=0):
        """Return (cookie, errno, data) of the next reply, of a request of that length to read."""
        _, error, cookie = struct.unpack(">IIQ", receive(self.socket, 16))
        return cookie, error, receive(self.socket, length) if not error else b""

    def reply(self, length=0):
        """Return (errno, data) of the same."""
        return self.answer(length)[1:]

    def ask(self, command, offset=0, length=0, data=b""):
        self.send(command, offset, length, data)
        return self.reply(length if command == CMD_READ else 0)

    def close(self):
        self.socket.close()


class Load(threading.Thread):
    """Keeps `depth` requests open on one connection until it is stopped: a scan, which begins anew
    after `span` requests. They are to read, or of some other kinds in turn."""

    def __init__(self, path, export, depth, length=4096, span=1024, commands=(CMD_READ,)):
        super().__init__(daemon=True)
        self.client = Client(path, export)
        self.depth, self.length, self.span = depth, length, span
        self.commands = commands
        self.reply_length = length if commands == (CMD_READ,) else 0
        self.sent, self.done, self.errors = 0, 0, 0
        self.ends = False
        self.lost = None

    def run(self):
        try:
            for _ in range(self.depth):
                self._send()
            while not self.ends:
                error, _ = self.client.reply(self.reply_length)
                self.errors += bool(error)
                self.done += 1
                self._send()
        except OSError as why:
            self.lost = why

    def _send(self):
        command = self.commands[self.sent % len(self.commands)]
        if command == CMD_FLUSH:
            self.client.send(command)
        else:
            data = bytes(self.length) if command == CMD_WRITE else b""
            self.client.send(command, self.sent % self.span * self.length, self.length, data)
        self.sent += 1

    def stop(self):
        self.ends = True
        self.join()
        self.client.close()


def loads(path, export, depth, connections=1, commands=(CMD_READ,)):
    """Start a load of so many requests; a server takes at most 16 at a time from a connection."""
    started = [Load(path, export, depth // connections, commands=commands)
               for _ in range(connections)]
    for load in started:
        load.start()
    return started
