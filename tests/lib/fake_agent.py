# SPDX-License-Identifier: GPL-2.0-or-later
"""A stand-in for ebbd in tests of the guest driver: one VM, no libvirt, obeys the test.

Speaks the link protocol (virtio_ebb_link.h) with the device, and QMP with the VM's QEMU to plug
and unplug CPUs. It grants what the limits allow; a test can make it late, silent or refusing.
"""

import collections
import json
import os
import socket
import struct
import threading
import time

MAGIC = 0x4C424245
PROTO = 2
HELLO, REQUEST, TELEMETRY, MEM = 1, 2, 3, 4
WELCOME, RESPONSE, LIMITS, CPU, REVOKE = 128, 129, 130, 131, 132
REQ_CPU_ADD, REQ_CPU_REMOVE, REQ_CPU_LEND = 1, 2, 16
ACK, NACK, BUSY = 0, 1, 2
REASON_LIMIT, REASON_CEILING, REASON_NODE, REASON_HOST, REASON_CAPACITY = 1, 2, 3, 6, 7
NODE_ANY = 0xFFFF
F_FORCED, F_LENT, F_PARKED = 1 << 2, 1 << 3, 1 << 4
HELLO_F_DRIVER, HELLO_F_LEND, HELLO_F_VOM, HELLO_F_LEAVE = 1 << 0, 1 << 1, 1 << 2, 1 << 3
HELLO_F_BASELINE = 1 << 4
REVOKE_F_LEAVE = 1 << 0
TELEMETRY_TOTALS, TELEMETRY_VOM = 1, 2

# Of waits for what must come: long, since a machine that runs tests may be busy.
LIMIT_S = 300.0

HDR = struct.Struct("<IHHII")
LINK_CPU = struct.Struct("<QIHHII")
HELLO_HEAD = struct.Struct("<16sIIIHHQQ")
LINK_POOL = struct.Struct("<HHIQQQQ")
VOM_HEAD = struct.Struct("<HHIQ")
VOM_BUCKET = struct.Struct("<QIHH")
LIMIT = struct.Struct("<HHIIIQQIIQ")


class Qmp:
    """A QMP connection; events are handed to on_event from the reader's thread."""

    def __init__(self, path, on_event):
        self.on_event = on_event
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(path)
        self.lines = self.sock.makefile("r")
        self.answers = collections.deque()
        self.has_answer = threading.Condition()
        self.lock = threading.Lock()
        self.lines.readline()
        threading.Thread(target=self._read, daemon=True).start()
        self.run("qmp_capabilities")

    def _read(self):
        for line in self.lines:
            msg = json.loads(line)
            if "event" in msg:
                self.on_event(msg)
                continue
            with self.has_answer:
                self.answers.append(msg)
                self.has_answer.notify()

    def run(self, command, limit_s=120.0, **arguments):
        """Run a command; returns its value, raises RuntimeError with QEMU's words."""
        with self.lock:
            self.sock.sendall(json.dumps({"execute": command, "arguments": arguments}).encode())
            with self.has_answer:
                if not self.has_answer.wait_for(lambda: self.answers, limit_s):
                    raise RuntimeError(f"{command}: no answer in {limit_s} s")
                msg = self.answers.popleft()
        if "error" in msg:
            raise RuntimeError(f"{command}: {msg['error']['desc']}")
        return msg["return"]


class FakeAgent:
    """Listens for the device. Public methods are for the test's thread."""

    def __init__(self, link_path):
        self.link_path = link_path
        self.listener = None
        self.conn = None
        self.is_welcome = False
        self.qmp = None
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)
        self.slots = []         # CPU slots by vCPU index: props of QEMU, node, plugged, deleted
        self.granted = {}       # vcpu -> hv_cpu_id, as the device says, and what we granted since
        self.lent = set()       # of these, lent
        self.parked = set()     # of these, parked, as the last HELLO said
        self.startup = set()
        self.tier = 0           # wish that goes with the limits, VIRTIO_EBB_TIER_*
        self.limits = {}        # node -> CPUs that the VM may hold, startup set included
        self.mem_limits = {}    # node -> bytes that the VM may hold of its pool
        self.cutoffs = {}       # node -> VoM cut-off that goes with the limits
        self.vom_seq = 0        # histogram that is asked for with the limits
        self.voms = []          # those that came: (seq, [(value, kib, node), ...])
        self.pools = {}         # node -> {size, requested, held, unconfirmed}, as last told
        self.pools_at = 0.0     # when that was, time.monotonic()
        self.num_mem = 0        # times that was told
        self.generation = 0
        self.resets = 0
        self.num_requests = 0
        self.num_added = 0      # CPUs plugged in
        self.num_deleted = 0
        self.has_driver = False
        self.can_lend = False
        self.can_vom = False
        self.can_leave = False
        self.removals = {}      # vcpu -> tags of CPU_REMOVE that wait for its end
        self.behave = collections.deque()   # for the next requests: silent, delay:S, busy, refuse
        self.held_back = []     # requests that silence has swallowed
        self.log = []
        self.errors = []

    # ---- for tests ----

    def start(self):
        try:
            os.unlink(self.link_path)
        except FileNotFoundError:
            pass
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.link_path)
        self.listener.listen(1)
        threading.Thread(target=self._serve, args=(self.listener,), daemon=True).start()

    def stop(self):
        """Be away: the device loses its agent."""
        with self.lock:
            listener, self.listener = self.listener, None
            conn, self.conn = self.conn, None
            self.is_welcome = False
        os.unlink(self.link_path)
        listener.close()
        if conn:
            conn.shutdown(socket.SHUT_RDWR)

    def attach_qmp(self, path):
        self.qmp = Qmp(path, self._qmp_event)
        slots = self.qmp.run("query-hotpluggable-cpus")
        slots.sort(key=lambda s: [s["props"].get(k, 0)
                                  for k in ("socket-id", "die-id", "core-id", "thread-id")])
        with self.lock:
            self.slots = [{"props": s["props"], "type": s["type"], "plugged": "qom-path" in s}
                          for s in slots]
            self.startup = {i for i, s in enumerate(self.slots) if s["plugged"]}

    def set_limits(self, limits, deadline_ms=0):
        with self.lock:
            self.limits = dict(limits)
            self._send_limits(deadline_ms)

    def set_mem_limits(self, limits, deadline_ms=0):
        """Offer or demand memory: {node: bytes}."""
        with self.lock:
            self.mem_limits = dict(limits)
            self._send_limits(mem_deadline_ms=deadline_ms)

    def ask_vom(self, seq, cutoffs=None):
        """Ask for a histogram of the value of memory, and tell cut-offs: {node: value}."""
        with self.lock:
            self.vom_seq = seq
            self.cutoffs = dict(cutoffs or {})
            self._send_limits()

    def revoke(self, node, target_bytes, flags=0):
        """Take memory without the guest; returns when, by time.monotonic()."""
        with self.lock:
            at = time.monotonic()
            self._send(REVOKE, struct.pack("<HHIQ", node, flags, 0, target_bytes))
            return at

    def leave(self, node, target_bytes):
        """The same, by the guest."""
        return self.revoke(node, target_bytes, REVOKE_F_LEAVE)

    def force(self, vcpu, is_forced=True):
        with self.lock:
            self._send(CPU, struct.pack("<II", vcpu, F_FORCED if is_forced else 0))

    def hand_over(self, vcpu):
        """Plug a CPU in and give it to the guest as a lent one, unasked."""
        with self.lock:
            self._plug(vcpu)
            self.lent.add(vcpu)
            self._send(CPU, struct.pack("<II", vcpu, F_LENT))

    def release_held_back(self):
        """Answer now what silence has swallowed."""
        with self.lock:
            held, self.held_back = self.held_back, []
            for payload, link in held:
                self._obey(payload, link)

    def wait(self, what, predicate, limit_s=LIMIT_S):
        """Wait until predicate(self) holds; raises AssertionError otherwise."""
        with self.changed:
            if not self.changed.wait_for(lambda: predicate(self), limit_s):
                raise AssertionError(f"after {limit_s} s still not: {what}; "
                                     f"granted {sorted(self.granted)}, plugged "
                                     f"{[i for i, s in enumerate(self.slots) if s['plugged']]}, "
                                     f"log {self.log[-8:]}")

    def num_plugged(self):
        return sum(s["plugged"] for s in self.slots) - len(self.startup)

    # ---- link ----

    def _serve(self, listener):
        while True:
            try:
                conn, _ = listener.accept()
            except OSError:
                return
            with self.lock:
                if self.listener is not listener:
                    conn.close()
                    return
                self.conn = conn
                self.is_welcome = False
            try:
                self._read_frames(conn)
            except (OSError, EOFError):
                pass
            with self.changed:
                if self.conn is conn:
                    self.conn = None
                self.log.append("link down")
                self.changed.notify_all()

    def _read_frames(self, conn):
        while True:
            magic, proto, kind, length, reserved = HDR.unpack(self._read(conn, HDR.size))
            if magic != MAGIC or proto != PROTO or reserved or length > 65536:
                self.errors.append(f"bad frame from the device: {magic:#x} {proto} {kind} {length}")
                conn.close()
                return
            payload = self._read(conn, length)
            with self.changed:
                if kind == HELLO:
                    self._hello(payload)
                elif kind == REQUEST:
                    self.num_requests += 1
                    self._request(payload)
                elif kind == MEM:
                    self._mem(payload)
                elif kind == TELEMETRY:
                    self._telemetry(payload)
                else:
                    self.errors.append(f"unknown frame {kind} from the device")
                self.changed.notify_all()

    @staticmethod
    def _read(conn, n):
        data = b""
        while len(data) < n:
            piece = conn.recv(n - len(data))
            if not piece:
                raise EOFError
            data += piece
        return data

    def _send(self, kind, payload):
        if not self.conn:
            return
        try:
            self.conn.sendall(HDR.pack(MAGIC, PROTO, kind, len(payload), 0) + payload)
        except OSError:
            pass

    def _send_limits(self, deadline_ms=0, mem_deadline_ms=0):
        if not self.is_welcome:
            return
        self.generation += 1
        held = self._held()
        body = b""
        for n, limit in sorted(self.limits.items()):
            mem_held = self.pools[n]["held"] if n in self.pools else 0
            mem_limit = self.mem_limits.get(n, 0) if n in self.pools else 0
            body += LIMIT.pack(n, self.tier, deadline_ms if held[n] > limit else 0, held[n], limit,
                               mem_held, mem_limit, mem_deadline_ms if mem_held > mem_limit else 0,
                               0, self.cutoffs.get(n, 0) if n in self.pools else 0)
        self._send(LIMITS, struct.pack("<QII", self.generation, len(self.limits),
                                       self.vom_seq) + body)

    def _hello(self, payload):
        (_, flags, _, num, _, num_pools, generation, resets) = HELLO_HEAD.unpack_from(payload)
        self._take_pools(payload, HELLO_HEAD.size + num * LINK_CPU.size, num_pools)
        self.resets = resets
        self.has_driver = bool(flags & HELLO_F_DRIVER)
        self.can_lend = bool(flags & HELLO_F_LEND)
        self.can_vom = bool(flags & HELLO_F_VOM)
        self.can_leave = bool(flags & HELLO_F_LEAVE)
        self.can_baseline = bool(flags & HELLO_F_BASELINE)
        self.generation = max(self.generation, generation)
        known = {}
        self.lent, self.parked = set(), set()
        for i in range(num):
            hv, _, _, cpu_flags, vcpu, _ = LINK_CPU.unpack_from(payload, HELLO_HEAD.size +
                                                                i * LINK_CPU.size)
            if not cpu_flags & 1:
                known[vcpu] = hv
            if cpu_flags & F_LENT:
                self.lent.add(vcpu)
            if cpu_flags & F_PARKED:
                self.parked.add(vcpu)
        self.granted = known
        self.log.append(f"hello: {sorted(known)} lent {sorted(self.lent)} resets {resets} "
                        f"driver {self.has_driver}")
        for vcpu, slot in enumerate(self.slots):
            if slot["plugged"] and vcpu not in known and vcpu not in self.startup \
                    and vcpu not in self.removals:
                self._unplug(vcpu, None)
        if not self.is_welcome:
            self.is_welcome = True
            self._send(WELCOME, struct.pack("<II", ACK, 0))
        if self.limits:
            self._send_limits()

    def _take_pools(self, payload, at, count):
        self.pools_at = time.monotonic()
        self.pools = {}
        for i in range(count):
            node, _, _, size, requested, held, unconfirmed = \
                LINK_POOL.unpack_from(payload, at + i * LINK_POOL.size)
            self.pools[node] = {"size": size, "requested": requested, "held": held,
                                "unconfirmed": unconfirmed}

    def _mem(self, payload):
        self.num_mem += 1
        self._take_pools(payload, 8, struct.unpack_from("<I", payload)[0])

    def _telemetry(self, payload):
        if struct.unpack_from("<H", payload)[0] != TELEMETRY_VOM:
            return
        _, num, seq, reserved = VOM_HEAD.unpack_from(payload)
        buckets = list(VOM_BUCKET.iter_unpack(payload[VOM_HEAD.size:]))
        if reserved or len(buckets) != num or any(b[3] for b in buckets):
            self.errors.append(f"bad histogram from the device: {num} buckets, {payload[:64]}")
        self.voms.append((seq, [b[:3] for b in buckets]))

    def _respond(self, tag, kind, status, reason, vcpus=()):
        # The request was one of a link that is down: on a new one, WELCOME comes first.
        if not self.is_welcome:
            return
        body = b"".join(LINK_CPU.pack(0, 0, 0, 0, v, 0) for v in vcpus)
        self._send(RESPONSE, struct.pack("<QHHHH", tag, kind, status, reason, len(vcpus)) + body)

    def _request(self, payload):
        kind, _, _, tag = struct.unpack_from("<HHIQ", payload)
        behave = self.behave.popleft() if self.behave else ""
        self.log.append(f"request {kind} {behave}")
        if behave == "silent":
            self.held_back.append((payload, self.conn))
        elif behave == "busy":
            self._respond(tag, kind, BUSY, REASON_CAPACITY)
        elif behave == "refuse":
            self._respond(tag, kind, NACK, REASON_HOST)
        elif behave.startswith("delay:"):
            threading.Timer(float(behave[6:]), self._request_later,
                            (payload, self.conn)).start()
        else:
            self._obey(payload, self.conn)

    def _obey(self, payload, link):
        # The device forgets requests of a link that is down, and nothing is to come of them.
        if link is not self.conn:
            return
        kind, _, _, tag = struct.unpack_from("<HHIQ", payload)
        if kind == REQ_CPU_ADD:
            count, node = struct.unpack_from("<HH", payload, 16)
            self._add(tag, count, node)
        elif kind == REQ_CPU_LEND:
            self.lent.add(struct.unpack_from("<I", payload, 48 + 16)[0])
            self._respond(tag, kind, ACK, 0)
            self._send_limits()
        else:
            self._remove(tag, struct.unpack_from("<I", payload, 48 + 16)[0])

    def _request_later(self, payload, link):
        with self.changed:
            self._obey(payload, link)
            self.changed.notify_all()

    # ---- CPUs ----

    def _node(self, vcpu):
        return self.slots[vcpu]["props"].get("node-id", 0)

    def _held(self):
        return collections.Counter(self._node(v) for v in
                                   self.startup | (set(self.granted) - self.lent))

    def _plug(self, vcpu):
        slot = self.slots[vcpu]
        self.qmp.run("device_add", driver=slot["type"], id=f"vcpu{vcpu}", **slot["props"])
        slot["plugged"] = True
        self.granted[vcpu] = None
        self.num_added += 1

    def _add(self, tag, count, node):
        held = self._held()
        free = []
        # Those that are lent first.
        for vcpu in sorted(range(len(self.slots)), key=lambda v: (v not in self.lent, v)):
            n = self._node(vcpu)
            is_taken = self.slots[vcpu]["plugged"] and vcpu not in self.lent
            if is_taken or vcpu in self.removals or (node != NODE_ANY and n != node):
                continue
            if held[n] < self.limits.get(n, 0) and len(free) < count:
                held[n] += 1
                free.append(vcpu)
        if not free:
            is_full = all(s["plugged"] and v not in self.lent for v, s in enumerate(self.slots)
                          if node in (NODE_ANY, self._node(v)))
            self._respond(tag, REQ_CPU_ADD, NACK, REASON_CEILING if is_full else REASON_LIMIT)
            return
        for vcpu in free:
            try:
                if vcpu not in self.lent:
                    self._plug(vcpu)
            except RuntimeError as e:
                self.errors.append(str(e))
                self._respond(tag, REQ_CPU_ADD, NACK, REASON_HOST)
                return
        self.lent -= set(free)
        self._respond(tag, REQ_CPU_ADD, ACK, 0, free)
        self._send_limits()

    def _remove(self, tag, vcpu):
        if not self.slots[vcpu]["plugged"]:
            self.granted.pop(vcpu, None)
            self.lent.discard(vcpu)
            self._respond(tag, REQ_CPU_REMOVE, ACK, 0)
            return
        self._unplug(vcpu, tag)

    def _unplug(self, vcpu, tag):
        tags = self.removals.setdefault(vcpu, [])
        if tag is not None:
            tags.append(tag)
        try:
            self.qmp.run("device_del", id=f"vcpu{vcpu}")
        except RuntimeError as e:
            self.log.append(str(e))

    def _qmp_event(self, msg):
        name = msg["data"].get("device", "") if msg["event"] == "DEVICE_DELETED" else ""
        if name.startswith("vcpu"):
            # The reader of QMP must not wait for the lock, whose holder may wait for QMP.
            threading.Thread(target=self._deleted, args=(int(name[4:]),), daemon=True).start()

    def _deleted(self, vcpu):
        """Maybe unasked: a guest that was asked twice may eject what was plugged in between."""
        with self.changed:
            self.slots[vcpu]["plugged"] = False
            self.granted.pop(vcpu, None)
            self.lent.discard(vcpu)
            for tag in self.removals.pop(vcpu, []):
                self._respond(tag, REQ_CPU_REMOVE, ACK, 0)
            self._send_limits()
            self.num_deleted += 1
            self.log.append(f"deleted {vcpu}")
            self.changed.notify_all()
