# SPDX-License-Identifier: GPL-2.0-or-later
"""What tags cost a request, of the same server with and without them.

Two disks that take no time: null-co, which answers at once, so that no request ever waits for
another; and files in memory, read by QEMU's threads, where twice as many requests are open as may
be at the disk.

What a server uses for a request depends on how many it finds at a time, so on when it runs, more
than on tags. So what tags add is measured without a server: one thread that keeps requests open at
the same nodes, above null-co, and does nothing else. A server is measured for what that is a part
of.
"""
import os
import statistics
from contextlib import ExitStack

from . import metrics
from .storage import Client, StorageDaemon, disk_in_memory, url

MIB = 1 << 20
CLIENTS, DEPTH = 4, 16
NULL, MEMORY = "null-co", "memory"
COUNT = {NULL: 6000, MEMORY: 3000}              # requests of each client
ALONE = 100000                                  # of the process without a server
ALONE_OPEN = 32         # the filter's own depth: as many are at the disk with it as without
ONE_AT_A_TIME = 1000
FILE_MIB = 16
NO_LIMIT = 10 ** 9                              # IOPS: QEMU's throttle counts, and never waits
WITHOUT, NOTHING, THROTTLE = "no tags", "disk alone", "throttle"
SERVED = metrics.BASE, WITHOUT, THROTTLE
IN_PROCESS = metrics.BASE, WITHOUT, NOTHING
NOTES = [
    f"Cost: the storage daemon that ebb-volumed runs, started as it does, with {CLIENTS} volumes "
    f"and a client for each, which keeps {DEPTH} requests of 4 KiB to read open (qemu-img bench). "
    "ebb: the filter ebb-volume above the file, half of the volumes promised something; no tags: "
    "QEMU's node for raw files in its place; throttle: QEMU's filter throttle above that, which is "
    "behind libvirt's iotune, with a maximum that is never reached; disk alone: nothing above it.",
    "The disk null-co answers at once. memory: files read by QEMU's threads; half of the requests "
    "wait until others are done, as in a server with more requests than its depth (32).",
    f"QEMU alone: CPU time of qemu-img, which opens the nodes itself and keeps {ALONE_OPEN} "
    "requests open at null-co, as a VM without a server would. tags add: ebb less no tags, turn by "
    "turn; in % of what the server needs for a request without tags: tags cost.",
    "Client, server and others share the machine's CPUs, so throughput is that of the machine just "
    "then, and the server's CPU time depends on how many requests it finds when it runs.",
]


class Values:
    """Of several units."""

    def __init__(self):
        self.of = {unit: metrics.Values(unit) for unit in ("ns", "K/s", "%")}

    def note(self, unit, *key_and_value):
        self.of[unit].note(*key_and_value)

    def found(self, unit, *key):
        return self.of[unit].of[key]

    def metrics(self):
        return [m for values in self.of.values() for m in values.metrics()]


def disk_of(kind, folder, number):
    if kind == NULL:
        return {"driver": "null-co", "size": FILE_MIB * MIB}
    return disk_in_memory(os.path.join(folder, f"{number}.img"))


def volume(variant, number, disk):
    """The node that is exported."""
    if variant == NOTHING:
        return disk
    if variant == metrics.BASE:
        # Little is promised, so nearly all capacity is spare: a decision by weight.
        promise = {"reserve-iops": 100} if number % 2 else {}
        return {"driver": "ebb-volume", "volume": f"d{number}", "tenant": f"t{number}",
                "file": disk, **promise}
    raw = {"driver": "raw", "file": disk}
    if variant == THROTTLE:
        return {"driver": "throttle", "throttle-group": f"g{number}", "file": raw}
    return raw


def groups():
    return [{"qom-type": "throttle-group", "id": f"g{i}", "limits": {"iops-total": NO_LIMIT}}
            for i in range(CLIENTS)]


def load(daemon, count, depth, clients):
    """Return {what: value} of a request, with so many clients at once."""
    before = daemon.cpu_s()
    running = [Client(url(daemon, f"d{i}"), count, depth) for i in range(clients)]
    ended = [client.finish() for client in running]
    server_s, requests = daemon.cpu_s() - before, count * clients
    return {"server": server_s / requests * 1e9,
            "iops": sum(count / seconds for seconds, _ in ended),
            "each": ended[0][0] / count * 1e9}


def in_order(variants, turn):
    """None is always the first, and so the one that finds caches cold."""
    return [variants[(turn + i) % len(variants)] for i in range(len(variants))]


def served_turn(daemons, kind, turn, values):
    for variant in in_order(SERVED, turn):
        many = load(daemons[variant], COUNT[kind], DEPTH, CLIENTS)
        one = load(daemons[variant], ONE_AT_A_TIME, 1, 1)
        values.note("ns", "server CPU", kind, variant, many["server"])
        values.note("ns", "request, one at a time", kind, variant, one["each"])
        values.note("K/s", "requests at saturation", kind, variant, many["iops"] / 1000)


def process_turn(folder, turn, values):
    for variant in in_order(IN_PROCESS, turn):
        opts = url_of(volume(variant, 1, disk_of(NULL, folder, 0)))
        _, cpu_s = Client(opts, ALONE, ALONE_OPEN).finish()
        values.note("ns", "QEMU alone, CPU", NULL, variant, cpu_s / ALONE * 1e9)


def url_of(node, prefix=""):
    """A description of a node as one text."""
    parts = []
    for key, value in node.items():
        if isinstance(value, dict):
            parts.append(url_of(value, f"{prefix}{key}."))
        else:
            text = {True: "on", False: "off"}[value] if isinstance(value, bool) else value
            parts.append(f"{prefix}{key}={text}")
    return ",".join(parts)


def note_costs(values):
    """What follows from all turns."""
    server = {kind: statistics.median(values.found("ns", "server CPU", kind, WITHOUT))
              for kind in COUNT}
    for tags, without in zip(values.found("ns", "QEMU alone, CPU", NULL, metrics.BASE),
                             values.found("ns", "QEMU alone, CPU", NULL, WITHOUT)):
        values.note("ns", "tags add", NULL, metrics.BASE, tags - without)
        for kind in COUNT:
            values.note("%", "tags cost", kind, metrics.BASE,
                        (tags - without) / server[kind] * 100)


def measure(folder, turns):
    values = Values()
    for i in range(CLIENTS):
        with open(os.path.join(folder, f"{i}.img"), "wb") as f:
            f.write(b"x" * (FILE_MIB * MIB))
    for kind in COUNT:
        with ExitStack() as stack:
            daemons = {v: stack.enter_context(StorageDaemon(
                os.path.join(folder, f"{kind}-{number}"),
                {f"d{i}": volume(v, i, disk_of(kind, folder, i)) for i in range(CLIENTS)},
                groups() if v == THROTTLE else ())) for number, v in enumerate(SERVED)}
            # The first run of each opens files and fills caches.
            for daemon in daemons.values():
                load(daemon, ONE_AT_A_TIME, DEPTH, CLIENTS)
            for turn in range(turns):
                served_turn(daemons, kind, turn, values)
    for turn in range(turns):
        process_turn(folder, turn, values)
    note_costs(values)
    return values.metrics()


def bounds_of(rows):
    return [metrics.bound(rows, ("tags cost", kind, metrics.BASE), "median", "<= 3",
                          f"CPU time that tags add to a request, of the server's without tags, "
                          f"disk {kind}, %")
            for kind in COUNT]
