# SPDX-License-Identifier: GPL-2.0-or-later
"""oltp-server, a node of a database, in a VM with a disk and a network device (oltp_server.py has
the same on this machine). It is asked over its own protocol, since nothing else leads in."""
import json
import os
import time

from . import domain, hostmem, netns
from .lab import TOP
from .oltp_server import ANSWER_S, END_S, START_S, Observer
from .process import SetupError, run

CLIENT_PORT, LINK_PORT = 6379, 6380
BOOT_S = 100
SHELL_S = 30
STATUS_TRIES = 3
FOLDER = "/cold/db"         # on the disk
SECRET = "/run/secret"      # the nodes prove to each other that they know it


class Guest:
    """A VM, started; its servers come and go."""

    def __init__(self, lab, boot, vm, cpu):
        """cpu: of this machine, on which all of its QEMU runs."""
        self.lab, self.boot, self.vm = lab, boot, vm
        self.address = vm.address.partition("/")[0]
        name = boot.prefix + vm.name
        lab.define(boot, vm)
        lab.virsh("start", name)
        self.pid = hostmem.qemu_pid(vm.uuid)
        if self.pid is None:
            raise SetupError(f"{vm.name} does not run")
        for thread in os.listdir(f"/proc/{self.pid}/task"):
            os.sched_setaffinity(int(thread), {cpu})

    def wait(self):
        """Until its system is up."""
        self.shell("true", BOOT_S)

    def shell(self, command, patience_s=SHELL_S):
        return run([os.path.join(TOP, "scripts", "vm-exec"), "-t", str(patience_s),
                    domain.command_path(self.boot, self.vm), command], timeout=patience_s + 10)


class Node:
    """A server in a guest. Use as a context."""

    def __init__(self, guest, name, log_dir, *options, memory_mib=0):
        self.guest, self.name, self.options = guest, name, list(options)
        if memory_mib:
            self.options += ["--memory-mib", str(memory_mib), "--cold-dir", f"{FOLDER}/cold"]
        self.log_path = os.path.join(log_dir, name + ".log")
        self.address = f"{guest.address}:{CLIENT_PORT}"
        self.observer = Observer(self.connect, ANSWER_S)

    def __enter__(self):
        self.guest.shell(
            f"rm -rf {FOLDER}; mkdir -p {FOLDER}/log {FOLDER}/cold; "
            f"echo a-secret-of-the-lab >{SECRET}; chmod 600 {SECRET}; "
            f"oltp-server --cpus 0 --quiet --listen 0.0.0.0:{CLIENT_PORT} "
            f"--durability commit --log-dir {FOLDER}/log --relocate-secret {SECRET} "
            f"{' '.join(self.options)} </dev/null >/run/node.out 2>&1 & echo $! >/run/node.pid")
        end_at = time.monotonic() + START_S
        while True:
            try:
                self.connect().close()
                return self
            except OSError as e:
                if time.monotonic() > end_at:
                    self.__exit__()
                    raise SetupError(f"oltp-server {self.name} does not serve ({e}), see "
                                     f"{self.log_path}") from None
            time.sleep(0.2)

    def __exit__(self, *_):
        self.observer.close()
        said = self.guest.shell(
            "kill $(cat /run/node.pid); for i in $(seq 100); do kill -0 $(cat /run/node.pid) || "
            "break; sleep 0.2; done 2>/dev/null; cat /run/node.out", END_S)
        with open(self.log_path, "a", encoding="utf-8") as log:
            log.write(said)

    @property
    def pid(self):
        """Whose CPU time is the node's: that of its VM."""
        return self.guest.pid

    def connect(self):
        return netns.connect(self.guest.lab.network_path(), (self.guest.address, CLIENT_PORT))

    def relocate(self, node, clients, how):
        """As that of oltp_server.Node."""
        try:
            self.observer.command("RELOCATE", "TO", node, "CLIENTS", clients, *how.split())
        except OSError as e:
            raise SetupError(f"{self.name}: relocate: {e}") from None

    def status(self):
        for _ in range(STATUS_TRIES - 1):
            try:
                return json.loads(self.observer.command("RELOCATE", "STATUS"))
            except OSError:
                # The node has closed the connection, as it does with those of clients.
                time.sleep(0.2)
        return json.loads(self.observer.command("RELOCATE", "STATUS"))
