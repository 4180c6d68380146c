# SPDX-License-Identifier: GPL-2.0-or-later
"""A disk that some processes read slowly, as storage in a network would be: a control group whose
reads of one device the kernel holds to a rate. Writes are as fast as ever.

Only reads that reach the device count: those of the engine do, since they go around the page cache.
"""
import os

from .process import SetupError

# Where the controller is: version 1 has a hierarchy of its own, version 2 one for all.
V1, V2 = "/sys/fs/cgroup/blkio", "/sys/fs/cgroup"


def device_of(folder, blocks="/sys/dev/block"):
    """"MAJOR:MINOR" of the disk under a folder; of a partition, that of the whole disk."""
    number = os.stat(folder).st_dev
    entry = os.path.realpath(os.path.join(blocks, f"{os.major(number)}:{os.minor(number)}"))
    if not os.path.isdir(entry):
        raise SetupError(f"{folder} is not on a disk, so reads of it cannot be slowed down")
    if os.path.exists(os.path.join(entry, "partition")):
        entry = os.path.dirname(entry)
    with open(os.path.join(entry, "dev"), encoding="ascii") as f:
        return f.read().strip()


class SlowDisk:
    """Use as a context, in which processes may be added; they must have ended at its end."""

    def __init__(self, device, read_mib_s, v1=V1, v2=V2):
        self.device, self.bytes_s = device, read_mib_s << 20
        self.is_v1 = os.path.isdir(v1)
        self.parent = v1 if self.is_v1 else v2
        self.group = os.path.join(self.parent, f"ebb-slow-disk-{os.getpid()}")

    def __enter__(self):
        try:
            if not self.is_v1:
                _write(os.path.join(self.parent, "cgroup.subtree_control"), "+io")
            os.makedirs(self.group, exist_ok=True)
            if self.is_v1:
                _write(os.path.join(self.group, "blkio.throttle.read_bps_device"),
                       f"{self.device} {self.bytes_s}")
            else:
                _write(os.path.join(self.group, "io.max"), f"{self.device} rbps={self.bytes_s}")
        except OSError as e:
            self.__exit__()
            raise SetupError(f"reads of a disk cannot be slowed down: {e}") from e
        return self

    def __exit__(self, *_):
        try:
            os.rmdir(self.group)
        except OSError:
            # The cgroup was not made, or still has a process: an empty cgroup does no harm.
            pass

    def add(self, pid):
        _write(os.path.join(self.group, "cgroup.procs"), str(pid))


def _write(path, text):
    with open(path, "w", encoding="ascii") as f:
        f.write(text)
