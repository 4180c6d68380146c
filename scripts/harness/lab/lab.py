# SPDX-License-Identifier: GPL-2.0-or-later
"""What a scenario runs on: a private libvirtd, the host agent on it, VMs; started and ended here.

Nothing may outlive the scenario. The lab ends by itself when its owner is gone (scripts/lab), and
programs started here get SIGTERM from the kernel when this process dies, however it dies. What a
killed run has left nevertheless is removed before the next one starts.
"""
import fcntl
import hashlib
import json
import os
import re
import subprocess
import tempfile
import time

from . import cgroup_moves, domain
from .process import SetupError, die_with_parent, end, run

TOP = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))
BUILD = os.path.join(TOP, "build")
SERIES = "6.1"          # guest kernel of the scenarios
GUEST_HZ = 250          # its CONFIG_HZ
MAX_GUEST_CPUS = 64     # its CONFIG_NR_CPUS is far above
MAX_LAB_PATH = 50       # unix sockets: 107 bytes, of which the agent's links need 57
MEMORY_DIR = "/dev/shm"
BRIDGE = "ebb0"         # of a lab with a network (scripts/lab)
REFUSED_S = 15              # longest wait for a guest's terminal to be free
AGENT_START_S = 120         # it takes moments, but not on a machine that is busy


def folder():
    """Short enough for unix sockets, and the same for each run from this checkout."""
    path = os.path.join(BUILD, "demo")
    if len(path) <= MAX_LAB_PATH:
        return path
    return "/tmp/ebb-demo-" + hashlib.sha256(TOP.encode()).hexdigest()[:8]


def kernel_options(accelerator):
    """Kernel options that spare a guest on a core with a quota what it cannot do well there.

    numa_balancing=disable: an engine places its records itself. When workers start on another node
    the kernel would move pages after them, and flush the TLBs of all CPUs by interrupts, each of
    which waits for a CPU that is out of quota: up to a second without a single commit.

    noreplace-smp: no patching of the whole kernel when a second CPU comes. nohz_full: no timer tick
    on CPUs that run one worker; as emulated, eight guest CPUs with 250 ticks a second had QEMU's
    main thread runnable in 125 of 323 looks at it, and its lock held. Emulated guests see the
    host's time stamp counter, so they are told its frequency (tsc_early_khz: calibrated while out
    of quota, their clocks would run several times too fast) and what follows from it for delay
    loops (lpj: otherwise each new CPU is calibrated, which takes long).
    """
    options = f"numa_balancing=disable noreplace-smp nohz_full=1-{MAX_GUEST_CPUS - 1}"
    if accelerator == "tcg":
        with open("/proc/cpuinfo", encoding="ascii") as f:
            found = re.search(r"^bogomips\s*: ([0-9.]+)$", f.read(), re.M)
        if found:
            tsc_hz = float(found.group(1)) * 500000
            options += f" tsc_early_khz={tsc_hz / 1000:.0f} lpj={tsc_hz / GUEST_HZ:.0f}"
    return options


def is_for_direct_io(path):
    """Of files in memory it depends on the kernel's version."""
    try:
        with tempfile.NamedTemporaryFile(dir=path) as f:
            os.close(os.open(f.name, os.O_RDWR | os.O_DIRECT))
    except OSError:
        return False
    return True


def remove_disks(path, prefix):
    """Those of a lab's VMs in a folder that is not the lab's: nothing else there is touched."""
    for name in os.listdir(path) if prefix and os.path.isdir(path) else ():
        if name.startswith(prefix) and ".disk" in name:
            os.unlink(os.path.join(path, name))


class Lab:
    """The private libvirtd and the agent. Use as a context: leaving it removes everything."""

    def __init__(self, host_spec, policy, log_dir, agent_options=None, network=""):
        """network: A.B.C.D/BITS of the host in a network of the lab's own; empty: there is
        none."""
        self.dir, self.network = folder(), network
        self.host_spec, self.policy, self.log_dir = host_spec, policy, log_dir
        self.agent_options = agent_options or {}
        self.run_dir = os.path.join(self.dir, "ebb")
        self.console_dir = os.path.join(self.dir, "vm")
        self.prefix = self.uri = None
        self.agent = None
        self.lock = None
        self.hastened = []

    def __enter__(self):
        self._lock()
        try:
            self._lab("stop")
            for path in (self.run_dir, self.console_dir, self.log_dir):
                os.makedirs(path, exist_ok=True)
            for path in (self.run_dir, self.console_dir):
                _empty(path)
            self._lab("start", "--owner", str(os.getpid()))
            self.prefix = self._lab("prefix").strip()
            self.uri = self._lab("uri").strip()
            remove_disks(MEMORY_DIR, self.prefix)
            self.hastened = cgroup_moves.hasten()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.stop_agent()
        try:
            self._lab("stop")
            _empty(self.console_dir, ".disk")
            remove_disks(MEMORY_DIR, self.prefix)
        finally:
            cgroup_moves.restore(self.hastened)
            self.hastened = []
            if self.lock:
                self.lock.close()
                self.lock = None

    def _lock(self):
        os.makedirs(self.dir, exist_ok=True)
        self.lock = open(os.path.join(self.dir, "owner"), "a+", encoding="ascii")
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.lock.seek(0)
            pid = self.lock.read().strip()
            self.lock.close()
            self.lock = None
            raise SetupError(f"another scenario runs from this checkout (process {pid})") from None
        self.lock.truncate(0)
        self.lock.write(str(os.getpid()))
        self.lock.flush()

    def _lab(self, *args):
        return run([*self._command(), *args], timeout=90,
                   env=dict(os.environ, EBB_LAB_NETWORK=self.network))

    def _command(self):
        return [os.path.join(TOP, "scripts", "lab"), "-d", self.dir]

    def in_network(self):
        """Words before a command that is to run in the lab's network."""
        return [*self._command(), "net"]

    def network_path(self):
        """The file of the lab's network namespace."""
        with open(os.path.join(self.dir, "run", "libvirtd.pid"), encoding="ascii") as f:
            return f"/proc/{f.read().strip()}/ns/net"

    # ---- the agent ----

    def agent_command(self):
        """The command line of ebbd here."""
        program = os.path.join(BUILD, "host", "bin", "ebbd")
        options = {"libvirt_uri": self.uri, "run_dir": self.run_dir, "state_dir": self.run_dir,
                   "host": self.host_spec, "policy": self.policy,
                   "emu_group": f"ebb-emu-{self.prefix}", **self.agent_options}
        return [program] + [word for k, v in options.items() for word in ("-o", f"{k}={v}")]

    def start_agent(self):
        args = self.agent_command()
        log = open(os.path.join(self.log_dir, "ebbd.log"), "w", encoding="utf-8")
        with log:
            self.agent = subprocess.Popen(args, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                          start_new_session=True, preexec_fn=die_with_parent)
        end_at = time.monotonic() + AGENT_START_S
        while time.monotonic() < end_at:
            if self.agent.poll() is not None:
                raise SetupError(f"ebbd ended with status {self.agent.returncode}, "
                                 f"see {log.name}: {_last_line(log.name)}")
            if subprocess.run(self.ctl("host"), capture_output=True, check=False).returncode == 0:
                return
            time.sleep(0.1)
        raise SetupError(f"ebbd does not answer, see {log.name}: {_last_line(log.name)}")

    def stop_agent(self):
        if self.agent:
            end(self.agent)
            self.agent = None

    def kill_agent(self):
        """It ends without a word: the emulated host stays, with threads where they are."""
        if self.agent:
            self.agent.kill()
            self.agent.wait()
            self.agent = None

    def agent_cpu_s(self):
        """CPU time that the agent has used so far."""
        with open(f"/proc/{self.agent.pid}/stat", encoding="ascii") as f:
            fields = f.read().rpartition(")")[2].split()
        return sum(int(v) for v in fields[11:13]) / os.sysconf("SC_CLK_TCK")

    def ctl(self, *args):
        """The command line of ebbctl for a request."""
        return [os.path.join(BUILD, "host", "bin", "ebbctl"), "--socket",
                os.path.join(self.run_dir, "control.sock"), *args]

    def ask(self, *args):
        """The answer of ebbctl --json."""
        text = run(self.ctl("--json", *args))
        try:
            return json.loads(text)
        except ValueError:
            return [json.loads(line) for line in text.splitlines() if line.strip()]

    # ---- VMs ----

    def boot(self, accelerator):
        guest = os.path.join(BUILD, "guest", SERIES)
        with open(os.path.join(guest, "cmdline"), encoding="ascii") as f:
            cmdline = f.read().strip() + " " + kernel_options(accelerator)
        return domain.Boot(os.path.join(BUILD, "qemu", "bin", "qemu-system-x86_64-ebb"),
                           os.path.join(guest, "vmlinuz"), os.path.join(guest, "initramfs"),
                           cmdline, accelerator, self.prefix,
                           os.path.join(self.run_dir, "link"), self.console_dir,
                           MEMORY_DIR if is_for_direct_io(MEMORY_DIR) else "",
                           bridge=BRIDGE if self.network else "")

    def virsh(self, *args, check=True):
        return run(["virsh", "-q", "-c", self.uri, *args], check=check)

    def libvirt_logs(self):
        """Of the private libvirtd and of the QEMUs that it started for this checkout, which tell
        why a VM did not start."""
        folder_of_logs = os.path.join(self.dir, "log")
        paths = [os.path.join(folder_of_logs, "libvirtd.log")]
        qemu = os.path.join(folder_of_logs, "qemu")
        if os.path.isdir(qemu):
            paths += [os.path.join(qemu, name) for name in sorted(os.listdir(qemu))]
        return [path for path in paths if os.path.exists(path)]

    def make_disks(self, boot, vm):
        """Its scratch disks: sparse files with an empty file system."""
        for i, mib in enumerate(vm.disks_mib):
            path = domain.disk_path(boot, vm, i)
            with open(path, "wb") as f:
                f.truncate(mib << 20)
            # Without a journal: nothing on it is worth more than the VM's run.
            run(["/sbin/mkfs.ext4", "-q", "-F", "-O", "^has_journal", "-E", "nodiscard", path])

    def define(self, boot, vm):
        self.make_disks(boot, vm)
        path = os.path.join(self.console_dir, vm.name + ".xml")
        with open(path, "w", encoding="utf-8") as f:
            f.write(domain.xml(boot, vm))
        self.virsh("define", path)

    def in_guest(self, boot, vm, command):
        """Runs a shell command in the guest, without waiting for more than its start."""
        args = [os.path.join(TOP, "scripts", "vm-exec"), "-t", "20",
                domain.command_path(boot, vm), command]
        end_at = time.monotonic() + REFUSED_S
        while True:
            try:
                return run(args)
            except SetupError as e:
                # QEMU has not noticed yet that the one before has gone.
                if "Connection refused" not in str(e) or time.monotonic() > end_at:
                    raise
            time.sleep(0.2)


def _empty(path, what=""):
    """Removes all below a folder, or the files with `what` in their name."""
    for root, folders, files in os.walk(path, topdown=False):
        for name in files:
            if what in name:
                os.unlink(os.path.join(root, name))
        for name in folders if not what else ():
            os.rmdir(os.path.join(root, name))


def _last_line(path):
    with open(path, encoding="utf-8", errors="replace") as f:
        lines = [line.strip() for line in f if line.strip()]
    return lines[-1] if lines else "(it said nothing)"
