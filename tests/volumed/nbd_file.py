#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs a command that finds parts of an NBD export as files: a disk without a VM.

usage: nbd_file.py SOCKET EXPORT FOLDER NAME=OFFSET:LENGTH... -- COMMAND...

FOLDER must be there and be empty; only the command sees the files. Each read, write and sync is a
request to the server, one after the other. One that fails is EIO; the next one connects anew. The
first line of output is the command's pid; it ends with this program, and this program with it.
Stopped, this program is a disk that does not answer.
"""
import ctypes
import errno
import os
import signal
import stat
import struct
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts"))
from harness.lab import nbd  # noqa: E402  pylint: disable=wrong-import-position

CLONE_NEWNS, MS_PRIVATE, PR_SET_PDEATHSIG = 0x20000, 0x4000 | 1 << 18, 1
MAX_WRITE = 1 << 20
LIBC = ctypes.CDLL(None, use_errno=True)

# Of linux/fuse.h.
LOOKUP, FORGET, GETATTR, SETATTR, OPEN, READ, WRITE = 1, 2, 3, 4, 14, 15, 16
RELEASE, FSYNC, FLUSH, INIT, INTERRUPT, BATCH_FORGET = 18, 20, 25, 26, 36, 42
FOPEN_DIRECT_IO, ASYNC_READ, BIG_WRITES, MAX_PAGES = 1, 1, 1 << 5, 1 << 22
VALID_S = 3600


class Disk:
    def __init__(self, path, export):
        self.path, self.export, self.client = path, export, None

    def ask(self, *request):
        try:
            if not self.client:
                self.client = nbd.Client(self.path, self.export)
                self.client.socket.settimeout(None)
            error, data = self.client.ask(*request)
        except (OSError, nbd.Refused):
            if self.client:
                self.client.close()
            self.client = None
            error, data = errno.EIO, b""
        if error:
            raise OSError(errno.EIO, "the disk")
        return data


class Files:
    """The files by their number in FUSE, which is 1 for the folder."""

    def __init__(self, disk, files):
        self.disk, self.files = disk, files

    @staticmethod
    def attributes(number, length):
        mode = stat.S_IFREG | 0o600 if number > 1 else stat.S_IFDIR | 0o700
        return struct.pack("<6Q10I", number, length, length // 512, 0, 0, 0, 0, 0, 0, mode, 1, 0,
                           0, 0, 4096, 0)

    def of_number(self, number):
        if number == 1:
            return self.attributes(1, 0)
        return self.attributes(number, self.files[number - 2][2])

    def answer(self, kind, number, body):
        if kind == INIT:
            flags = ASYNC_READ | BIG_WRITES | MAX_PAGES
            return struct.pack("<4I2H2I2HI7I", 7, 31, 0, flags, 16, 12, MAX_WRITE, 1,
                               MAX_WRITE // 4096, 0, 0, *[0] * 7)
        if kind == LOOKUP:
            name = body.rstrip(b"\0").decode()
            for i, one in enumerate(self.files):
                if one[0] == name:
                    return (struct.pack("<4Q2I", i + 2, 0, VALID_S, VALID_S, 0, 0) +
                            self.of_number(i + 2))
            raise OSError(errno.ENOENT, name)
        if kind in (GETATTR, SETATTR):
            return struct.pack("<Q2I", VALID_S, 0, 0) + self.of_number(number)
        if kind == OPEN:
            return struct.pack("<Q2I", 0, FOPEN_DIRECT_IO, 0)
        if kind in (RELEASE, FLUSH):
            return b""
        return self.transfer(kind, number, body)

    def transfer(self, kind, number, body):
        if kind == FSYNC:
            self.disk.ask(nbd.CMD_FLUSH)
            return b""
        if kind not in (READ, WRITE):
            raise OSError(errno.ENOSYS, "not needed")
        _, begin, bytes_all = self.files[number - 2]
        _, offset, length = struct.unpack_from("<2QI", body)
        if kind == READ:
            length = max(min(length, bytes_all - offset), 0)
            return self.disk.ask(nbd.CMD_READ, begin + offset, length) if length else b""
        if offset + length > bytes_all:
            raise OSError(errno.ENOSPC, "beyond the end")
        self.disk.ask(nbd.CMD_WRITE, begin + offset, length, body[40:40 + length])
        return struct.pack("<2I", length, 0)

    def serve(self, fd):
        while True:
            request = os.read(fd, MAX_WRITE + 65536)
            _, kind, unique, number = struct.unpack_from("<2I2Q", request)
            if kind in (FORGET, BATCH_FORGET, INTERRUPT):
                continue
            try:
                error, data = 0, self.answer(kind, number, request[40:])
            except OSError as why:
                error, data = -why.errno, b""
            try:
                os.write(fd, struct.pack("<IiQ", 16 + len(data), error, unique) + data)
            except OSError as why:
                # Who asked was killed meanwhile.
                if why.errno != errno.ENOENT:
                    raise


def must(result, what):
    if result:
        raise OSError(ctypes.get_errno(), what)


def mount(folder):
    fd = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    must(LIBC.unshare(CLONE_NEWNS), "unshare")
    must(LIBC.mount(None, b"/", None, MS_PRIVATE, None), "private mounts")
    options = f"fd={fd},rootmode=40000,user_id={os.getuid()},group_id={os.getgid()}"
    must(LIBC.mount(b"nbd_file", folder.encode(), b"fuse", 0, options.encode()), "mount")
    return fd


def run(command):
    pid = os.fork()
    if not pid:
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        os.execv(command[0], command)
    print(pid, flush=True)

    def wait():
        _, status = os.waitpid(pid, 0)
        os._exit(os.waitstatus_to_exitcode(status) & 255)
    # A handler of SIGCHLD would not run while this program waits for the next request.
    threading.Thread(target=wait, daemon=True).start()


def main():
    split = sys.argv.index("--")
    path, export, folder = sys.argv[1:4]
    files = []
    for one in sys.argv[4:split]:
        name, place = one.split("=")
        files.append((name, *(int(number) for number in place.split(":"))))
    fd = mount(folder)
    run(sys.argv[split + 1:])
    Files(Disk(path, export), files).serve(fd)


if __name__ == "__main__":
    main()
