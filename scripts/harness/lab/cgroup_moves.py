# SPDX-License-Identifier: GPL-2.0-or-later
"""Has the kernel move threads between cgroups at once, while a lab is there.

Otherwise it waits for an RCU grace period, some 10 ms, before each move that does not closely
follow another. The mount option favordynmods (cgroup_favordynmods=1 at boot is the same; Linux 6.0)
is one of the whole machine, so it is taken back; without it everything works, more slowly.
"""
import subprocess

OPTION = "favordynmods"


def hasten():
    """Remounts the cgroup hierarchies with the option; returns the argument of restore()."""
    changed = []
    with open("/proc/mounts", encoding="utf-8") as f:
        mounts = [line.split() for line in f]
    for _, path, kind, options, *_ in mounts:
        if kind == "cgroup2" and OPTION not in options.split(","):
            _remount(path, f"{options},{OPTION}")
            changed.append((path, options))
    return changed


def restore(changed):
    for path, options in changed:
        _remount(path, options)


def _remount(path, options):
    # With a source, mount does not add the options that are set already.
    subprocess.run(["mount", "-t", "cgroup2", "-o", f"remount,{options}", "none", path],
                   stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
