# SPDX-License-Identifier: GPL-2.0-or-later
"""How tenants share a slow disk in a second, with tags and with QEMU's own throttling.

Two tenants are promised something, two others flood the disk with different weights. QEMU's filter
throttle (libvirt's iotune) knows only maxima: those of all four together are what the disk does,
so that each has its part as long as nothing changes. What it can not do shows when the disk is
slower than that, and when one of the four rests.
"""
import os
import time
from contextlib import ExitStack

from harness.lab import nbd

from . import metrics
from .storage import StorageDaemon, disk_in_memory

DISK = 1000             # requests per second
SLOWER = 700            # still enough for all that is promised
RESERVED = {"a": 400, "b": 200}
WEIGHTS = {"c": 3, "d": 1}
MAXIMA = {**RESERVED, "c": 300, "d": 100}
OPEN, CLIENTS = 64, 4   # requests of each tenant, and the connections that they are on
DEPTH, ANY_DEPTH = 32, 4096
SETTLE_S, WINDOW_S = 0.5, 1
FILE_MIB = 8
VARIANTS = metrics.BASE, "throttle", "none"
NOTES = [
    f"Shares: a disk of {DISK} requests per second (a throttle group below all files). Of four "
    f"tenants with {OPEN} requests open, on {CLIENTS} connections each, a is promised "
    f"{RESERVED['a']} per second, b {RESERVED['b']}; c and d get the rest, 3 : 1. throttle: maxima "
    f"of {MAXIMA['a']}, {MAXIMA['b']}, {MAXIMA['c']} and {MAXIMA['d']} instead. none: neither.",
    f"Each value is of one window of {WINDOW_S} s. promise off: how far what a and b got is from "
    "the promise, for the time in which requests of theirs waited (ebb) or for the whole window. "
    "rest off: how far c's part of what c and d got is from 3/4. Counted by the server: throttle "
    "and none have ebb-volume above the disk, too, with no promise and a depth that is never "
    "reached.",
    f"disk slower: the disk does {SLOWER}; all promises still fit. disk used: what it does, of "
    "what it can, while a rests.",
]


class Tenants:
    """The clients of one daemon."""

    def __init__(self, variant, daemon):
        self.variant, self.daemon, self.loads = variant, daemon, {}

    def begin(self, names):
        for name in names:
            self.loads[name] = nbd.loads(self.daemon.nbd, name, OPEN, CLIENTS)

    def end(self, names):
        for name in names:
            for load in self.loads[name]:
                load.ends = True
        for name in names:
            for load in self.loads.pop(name):
                load.stop()
                if load.lost:
                    raise load.lost

    def disk(self, iops):
        self.daemon.ask("qom-set", path="/objects/disk", property="limits",
                        value={"iops-total": iops})

    def look(self):
        """{tenant: (units, seconds in which requests waited, the server's time)}"""
        found = {}
        for v in self.daemon.ask("query-ebb-volumes")["volumes"]:
            c, interval = v["counters"], v.get("interval")
            found[v["volume"]] = (c["issued-units"], c["waiting-us"] / 1e6,
                                  c["intervals"] + interval["age-us"] / 1e6 if interval else 0)
        return found

    def window(self):
        """Return ({tenant: units}, {tenant: seconds for which it wanted them}, seconds)."""
        first = self.look()
        time.sleep(WINDOW_S)
        last = self.look()
        grown = {name: [b - a for a, b in zip(first[name], last[name])] for name in self.loads}
        wanted = 1 if self.variant == metrics.BASE else 2
        return ({name: g[0] for name, g in grown.items()},
                {name: g[wanted] for name, g in grown.items()}, max(g[2] for g in grown.values()))


def volume(variant, name, path):
    raw = {"driver": "raw", "file": {"driver": "throttle", "throttle-group": "disk",
                                     "file": disk_in_memory(path)}}
    counted = {"driver": "ebb-volume", "volume": name, "tenant": name, "file": raw}
    if variant == metrics.BASE:
        # The tenant without a promise has nearly all of the rest.
        return {**counted, "reserve-iops": RESERVED.get(name, 0),
                "weight": WEIGHTS.get(name, 0) * 1000 or 1}
    if variant == "throttle":
        return {"driver": "throttle", "throttle-group": name, "file": counted}
    return counted


def groups(variant):
    limits = {"disk": DISK, **(MAXIMA if variant == "throttle" else {})}
    return [{"qom-type": "throttle-group", "id": name, "limits": {"iops-total": iops}}
            for name, iops in limits.items()]


def off_pct(value, want):
    return abs(value / want - 1) * 100


def note_promises(values, size, variant, got, wanted_s):
    for name, iops in RESERVED.items():
        # A tenant that never waited was promised nothing.
        if wanted_s[name] > WINDOW_S / 2:
            values.note(f"promise off, {size}", f"{iops} IOPS", variant,
                        off_pct(got[name], iops * wanted_s[name]))
        else:
            values.fail(f"promise off, {size}", f"{iops} IOPS", variant)


def one_turn(tenants, values):
    """Four windows: two with all, one with a slower disk, one while a rests."""
    variant = tenants.variant
    tenants.begin(MAXIMA)
    time.sleep(SETTLE_S)
    for _ in range(2):
        got, wanted_s, _ = tenants.window()
        note_promises(values, "1 s", variant, got, wanted_s)
        if got["c"] + got["d"]:
            values.note("rest off, 1 s", "3 : 1", variant,
                        off_pct(got["c"] / (got["c"] + got["d"]), 3 / 4))
        else:
            values.fail("rest off, 1 s", "3 : 1", variant)
    tenants.disk(SLOWER)
    time.sleep(SETTLE_S)
    got, wanted_s, _ = tenants.window()
    note_promises(values, "disk slower", variant, got, wanted_s)
    tenants.disk(DISK)
    tenants.end("a")
    time.sleep(SETTLE_S)
    got, _, seconds = tenants.window()
    values.note("disk used", "a rests", variant, sum(got.values()) / (DISK * seconds) * 100)
    tenants.end([name for name in MAXIMA if name != "a"])


def measure(folder, turns):
    values = metrics.Values("%")
    paths = {name: os.path.join(folder, name + ".img") for name in MAXIMA}
    for path in paths.values():
        with open(path, "wb") as f:
            f.write(b"x" * (FILE_MIB << 20))
    with ExitStack() as stack:
        all_tenants = []
        for variant in VARIANTS:
            daemon = stack.enter_context(StorageDaemon(
                os.path.join(folder, variant),
                {name: volume(variant, name, path) for name, path in paths.items()},
                groups(variant)))
            daemon.ask("ebb-scheduler-set",
                       depth=DEPTH if variant == metrics.BASE else ANY_DEPTH)
            all_tenants.append(Tenants(variant, daemon))
        for turn in range(turns):
            for i in range(len(VARIANTS)):
                one_turn(all_tenants[(turn + i) % len(VARIANTS)], values)
    return values.metrics()


def bounds_of(rows):
    found = []
    for name, size, words in [
            *(("promise off, 1 s", f"{iops} IOPS", f"a promise of {iops} IOPS beside floods: off, "
               "in 1 s, %") for iops in RESERVED.values()),
            ("rest off, 1 s", "3 : 1", "parts by weight: off, in 1 s, %"),
            *(("promise off, disk slower", f"{iops} IOPS", f"a promise of {iops} IOPS on a disk "
               f"of {SLOWER} instead of {DISK}: off, %") for iops in RESERVED.values())]:
        found.append(metrics.bound(rows, (name, size, metrics.BASE), "median", "<= 3", words))
    found.append(metrics.bound(rows, ("disk used", "a rests", metrics.BASE), "median", ">= 97",
                               "the disk is used while the tenant with the largest promise rests, "
                               "%"))
    return found
