# SPDX-License-Identifier: GPL-2.0-or-later
"""Clients of one or two oltp-servers that record what they asked and were told.

Each runs transactions (MULTI ... EXEC) on lists (APPEND and GET of a string of numbers with commas)
and on registers (SET ... GET, GET), and writes a history of docs/history-format.md to a file of its
own. oltp-check takes all these files as one history, whichever node a client had. No value is
written twice, so each read tells whose write it saw; lists also tell the order of the writes.
"""
import itertools
import random
import socket
import threading
import time

LISTS = 8           # in use at once
REGISTERS = 12
VALUES_OF_LISTS = 400   # after so many values other lists are used, so that none grows too long
PAUSE_S = 0.004
ANSWER_S = 30


def command(*args):
    out = b"*%d\r\n" % len(args)
    for arg in args:
        arg = str(arg).encode()
        out += b"$%d\r\n%s\r\n" % (len(arg), arg)
    return out


class Refused(Exception):
    """An error reply that says that nothing was executed."""


class Lost(Exception):
    """The connection broke, or the log of the node failed: the outcome is not known."""


class Client:
    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(ANSWER_S)
        self.socket.connect(path)
        self.file = self.socket.makefile("rb")

    def close(self):
        self.file.close()
        self.socket.close()

    def reply(self):
        line = self.file.readline()
        if not line.endswith(b"\r\n"):
            raise Lost
        kind, rest = line[:1], line[1:-2]
        if kind == b"-":
            words = rest.decode()
            if (words.startswith(("TRYAGAIN", "EXECABORT", "LOADING")) or
                    "moves to another node" in words):
                raise Refused
            if words.startswith("IOERR"):
                raise Lost
            raise ValueError(words)
        if kind == b"$":
            return None if rest == b"-1" else self.bulk(int(rest))
        if kind == b"*":
            return [self.reply() for _ in range(int(rest))]
        return rest.decode()

    def bulk(self, n):
        data = self.file.read(n + 2)
        if len(data) < n + 2:
            raise Lost
        return data[:n].decode()

    def transaction(self, commands):
        """The replies to the commands, which are one transaction."""
        self.socket.sendall(b"".join(command(*c) for c in [("MULTI",), *commands, ("EXEC",)]))
        for _ in range(len(commands) + 1):
            self.reply()
        return self.reply()


class Append:
    def __init__(self, key, value):
        self.command = ("APPEND", f"l{key}", f"{value},")
        self.asked = f"a:{key}:{value}"

    def told(self, _reply):
        return self.asked


class List:
    def __init__(self, key):
        self.command = ("GET", f"l{key}")
        self.asked = f"l:{key}"

    def told(self, reply):
        return f"{self.asked}:{(reply or '').rstrip(',')}"


class Write:
    """A write that also reads what it overwrites."""

    def __init__(self, key, value):
        self.command = ("SET", f"r{key}", value, "GET")
        self.read, self.write = f"r:{key}", f"w:{key}:{value}"
        self.asked = f"{self.read} {self.write}"

    def told(self, reply):
        return f"{self.read}:{reply or '-'} {self.write}"


class Read:
    def __init__(self, key):
        self.command = ("GET", f"r{key}")
        self.asked = f"r:{key}"

    def told(self, reply):
        return f"{self.asked}:{reply or '-'}"


class Shared:
    """What all clients of one history have in common."""

    def __init__(self):
        self.values = itertools.count(1)    # next() of it is atomic
        self.processes = itertools.count(1)
        self.last_list = LISTS - 1
        self.problems = []

    def operation(self):
        value = next(self.values)
        first = value // VALUES_OF_LISTS * LISTS
        number = first + random.randrange(LISTS)
        self.last_list = max(self.last_list, first + LISTS - 1)
        register = random.randrange(REGISTERS)
        return random.choice((Append(number, value), List(number), Write(register, value),
                              Read(register)))


class Recorder(threading.Thread):
    """A client of one node, to which it comes back whenever the connection broke."""

    def __init__(self, shared, path, file):
        super().__init__(daemon=True)
        self.shared, self.path = shared, path
        self.may_connect = threading.Event()
        self.may_connect.set()
        self.out = open(file, "w", encoding="ascii")    # pylint: disable=consider-using-with
        self.out.write("oltp-history 1\n")
        self.process = next(shared.processes)
        self.n_ok, self.n_unknown, self.is_ending = 0, 0, False

    def note(self, event, *operations):
        print(time.monotonic_ns(), self.process, event, *operations, file=self.out)

    def run_one(self, client, operations):
        self.note("invoke", *(o.asked for o in operations))
        try:
            replies = client.transaction([o.command for o in operations])
        except Refused:
            self.note("fail")
            raise
        except (Lost, OSError):
            self.n_unknown += 1
            self.note("info")
            self.process = next(self.shared.processes)
            raise
        self.note("ok", *(o.told(r) for o, r in zip(operations, replies)))

    def work(self):
        client = Client(self.path)
        try:
            while not self.is_ending:
                self.run_one(client, [self.shared.operation()
                                      for _ in range(random.randint(1, 4))])
                self.n_ok += 1
                time.sleep(PAUSE_S)
        finally:
            client.close()

    def run(self):
        try:
            while not self.is_ending:
                try:
                    self.may_connect.wait()
                    self.work()
                except (Lost, Refused, OSError):
                    pass
                time.sleep(0.02)
        except Exception as e:          # pylint: disable=broad-exception-caught
            self.shared.problems.append(repr(e))

    def read_all(self):
        """Instead of run: all that there is, so that an append that is missing is found."""
        client = Client(self.path)
        for key in range(self.shared.last_list + 1):
            self.run_one(client, [List(key)])
        self.run_one(client, [Read(key) for key in range(REGISTERS)])
        client.close()

    def end(self):
        """Of the thread, if it was started, and the file."""
        self.is_ending = True
        self.may_connect.set()
        if self.ident:
            self.join()
        self.out.close()
