# SPDX-License-Identifier: GPL-2.0-or-later
"""One VM of the test image under QEMU, without libvirt, for tests of the guest driver."""

import ctypes
import os
import re
import signal
import subprocess
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
GUESTS = f"{TOP}/build/guest"    # a folder for each series of kernels
QEMU = os.environ.get("EBB_QEMU", f"{TOP}/build/qemu/bin/qemu-system-x86_64-ebb")

# What a guest's kernel says when something is wrong with it or with us.
BAD_KERNEL_LOG = re.compile(
    r"WARNING:|BUG:|Oops|Kernel panic|general protection|Call Trace|INFO: task|lockdep|"
    r"soft lockup|hung_task|rcu: INFO|use-after-free|refcount_t|unable to handle|"
    r"bad (pgd|p4d|pud|pmd)|Bad page")


# Linux 6.12 sets aside CPUs for hot-plug only where it recognises a hypervisor: not in TCG, which
# has a name in CPUID that it does not know. So these VMs look like the one that is recognised by
# its firmware and by the port that QEMU imitates. Under KVM nothing of this is needed.
KNOWN_HYPERVISOR_CPU = "max,-hypervisor"
KNOWN_HYPERVISOR_FIRMWARE = ("-smbios", "type=1,serial=VMware-ebb")

# QEMU says the first while a test has its agent away, the second where a test wants small blocks,
# the third if a test cancels a migration while it is writing, and one built with ASan the fourth
# always.
KNOWN_QEMU_LOG = re.compile(r"Unable to connect character device ebb0|"
                            r"'block-size' property is smaller than the default|"
                            r"failed to save SaveStateEntry with id\(name\): \d+\(ram\): -5$|"
                            r"WARNING: ASan doesn't fully support makecontext")


PR_SET_PDEATHSIG = 1


# Of a command in a guest, and of waiting in it for what must come: a busy machine is slow.
COMMAND_S = 300.0
UNTIL_S = 120

# Until QEMU takes connections.
START_S = 300

# The device gives an agent that is silent so much time; no test waits as long.
REQUEST_TIMEOUT_MS = 120000


def until(condition, then):
    """Shell commands: wait until a command succeeds, then run others; fail if it never does.

    It runs once more when it has succeeded, and has to succeed again.
    """
    return (f"for i in $(seq {UNTIL_S * 10}); do {condition} && break; sleep 0.1; done; "
            f"{condition} && {{ {then}; }}")


def die_with_parent():
    """In the child: a test that is killed takes its VM along."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def memory_devices(sizes):
    """QEMU's options for virtio-mem devices: {id: (node, bytes[, size of blocks])}."""
    return [word for name, (node, size, *block) in sizes.items()
            for word in ("-object", f"memory-backend-ram,id=b-{name},size={size}",
                         "-device", f"virtio-mem-pci,id={name},memdev=b-{name},node={node},"
                                    f"block-size={block[0] if block else '2M'},requested-size=0")]


class GuestVm:
    """Two NUMA nodes of four CPUs each; CPU 0 is there at start.

    pools: {id: (node, bytes[, size of blocks])}, virtio-mem devices that the control device lists.
    options: more of the kernel command line.
    lend: the device knows of lending CPUs, can be told what memory is worth, and not of blocks
    that leave before they are taken; without it the other way round.
    cpu: more of QEMU's -cpu.
    """

    def __init__(self, series, agent, extra=(), pools=None, options="", lend=True, cpu=""):
        pools = pools or {}
        self.agent = agent
        self.folder = tempfile.mkdtemp(prefix="ebb-vm-")
        self.console_path = f"{self.folder}/console"
        guest = f"{GUESTS}/{series}"
        with open(f"{guest}/cmdline") as f:
            cmdline = f.read().strip()
        agent.link_path = f"{self.folder}/link"
        agent.start()
        qmp = f"{self.folder}/qmp"
        self.shell = f"{self.folder}/shell"
        self.process = subprocess.Popen(
            [QEMU, "-nodefaults", "-no-user-config", "-display", "none", "-L", "/usr/share/qemu",
             "-L", "/usr/share/seabios",
             "-machine", "pc", "-accel", "tcg,thread=multi",
             "-cpu", KNOWN_HYPERVISOR_CPU + cpu, *KNOWN_HYPERVISOR_FIRMWARE,
             "-m", "384,slots=8,maxmem=8G",
             "-smp", "1,maxcpus=8,sockets=8,cores=1,threads=1",
             "-object", "memory-backend-ram,id=m0,size=192M",
             "-object", "memory-backend-ram,id=m1,size=192M",
             "-numa", "node,nodeid=0,memdev=m0", "-numa", "node,nodeid=1,memdev=m1",
             *[word for socket in range(8)
               for word in ("-numa", f"cpu,node-id={socket // 4},socket-id={socket}")],
             "-kernel", f"{guest}/vmlinuz", "-initrd", f"{guest}/initramfs",
             "-append", f"{cmdline} ebb.shell=ttyS1 ebb.monitor=0 {options}",
             "-serial", f"file:{self.console_path}",
             "-serial", f"unix:{self.shell},server=on,wait=off",
             "-qmp", f"unix:{qmp},server=on,wait=off",
             "-chardev", f"socket,id=ebb0,path={agent.link_path},reconnect-ms=200",
             *memory_devices(pools), *extra,
             "-device", "virtio-ebb-pci,id=ebb,chardev=ebb0,"
             f"request-timeout-ms={REQUEST_TIMEOUT_MS}" +
             (",leave=off" if lend else ",lend=off,vom=off") +
             (",pools=" + ":".join(pools) if pools else "")],
            stdin=subprocess.DEVNULL, stdout=open(f"{self.folder}/qemu.log", "w"),
            stderr=subprocess.STDOUT, preexec_fn=die_with_parent)
        try:
            self.attach(qmp)
        except BaseException:
            self.stop()
            raise

    def attach(self, qmp):
        """As soon as QEMU takes connections: its socket is there a moment before it does."""
        end = time.monotonic() + START_S
        while True:
            try:
                return self.agent.attach_qmp(qmp)
            except (FileNotFoundError, ConnectionRefusedError):
                if self.process.poll() is not None or time.monotonic() > end:
                    raise RuntimeError(self.qemu_log() or "QEMU does not start") from None
            time.sleep(0.02)

    def run(self, command, limit_s=COMMAND_S):
        """Run a shell command in the guest; returns (exit status, its output)."""
        done = subprocess.run([f"{TOP}/scripts/vm-exec", "-t", str(limit_s), self.shell, command],
                              capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    def console(self):
        with open(self.console_path, errors="replace") as f:
            return f.read()

    def qemu_log(self):
        with open(f"{self.folder}/qemu.log", errors="replace") as f:
            return f.read()

    def mappings_of(self, size):
        """QEMU's mappings of exactly that size: [(address, bytes of this host's memory behind)]."""
        found = []
        is_it = False
        with open(f"/proc/{self.process.pid}/smaps") as f:
            for line in f:
                words = line.split()
                if "-" in words[0] and not words[0].endswith(":"):
                    start, end = (int(x, 16) for x in words[0].split("-"))
                    is_it = end - start == size
                elif is_it and words[0] == "Rss:":
                    found.append((start, int(words[1]) * 1024))
        return found

    def rss_of(self, size):
        """Bytes of this host's memory behind QEMU's mappings of exactly that size."""
        return sum(rss for _, rss in self.mappings_of(size))

    def scribble(self, size, count):
        """Put something into the first count bytes of QEMU's only mapping of that size."""
        [(start, _)] = self.mappings_of(size)
        with open(f"/proc/{self.process.pid}/mem", "r+b", buffering=0) as f:
            f.seek(start)
            if f.write(b"\x5a" * count) != count:
                raise RuntimeError("QEMU's memory can not be written to")

    def complaints(self):
        """Lines of the kernel's log and of QEMU's that should not be there."""
        _, text = self.run("dmesg")
        lines = text.splitlines() + self.console().splitlines()
        return sorted({x for x in lines if BAD_KERNEL_LOG.search(x)}) + \
            [x for x in self.qemu_log().splitlines() if x and not KNOWN_QEMU_LOG.search(x)]

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(5)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        subprocess.run(["rm", "-rf", self.folder], check=True)
