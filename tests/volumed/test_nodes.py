# SPDX-License-Identifier: GPL-2.0-or-later
"""A database on its way between two oltp-servers on one shared volume, and one of them is gone:
the other one takes over, and nothing that was acknowledged is lost."""
import hashlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time

from rig import BIN, PATIENCE_S, VolumeCase

HALF = 256 << 20
PLACES = {"a": 0, "b": HALF, "c": 0}
OTHER = {"a": "b", "b": "a"}
WRITERS = 6
KEYS = 24               # of each
AFTER_S = 2
NBD_FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "nbd_file.py")


class Client:
    """One connection; replies are lines of RESP2 without their ends, bulk strings their text."""

    def __init__(self, path, seconds=10):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(seconds)
        self.socket.connect(path)
        self.lines = self.socket.makefile("rb")

    def send(self, line):
        self.socket.sendall(line.encode() + b"\r\n")

    def reply(self):
        line = self.lines.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionError("closed")
        text = line[1:-2].decode()
        if line[:1] == b"-":
            raise ConnectionError(text)
        if line[:1] == b"$":
            return self.lines.read(int(text) + 2)[:-2].decode() if text != "-1" else None
        if line[:1] == b"*":
            return [self.reply() for _ in range(int(text))]
        return text

    def ask(self, line):
        self.send(line)
        return self.reply()

    def close(self):
        self.socket.close()


class Writer(threading.Thread):
    """Counts keys up at whichever node answers, at its own one first; a request may be lost, an
    answer may not."""

    def __init__(self, number, paths):
        super().__init__(daemon=True)
        self.paths = paths
        self.keys = [f"count:{number}:{i}" for i in range(KEYS)]
        self.seen, self.sent = dict.fromkeys(self.keys, 0), dict.fromkeys(self.keys, 0)
        self.rounds, self.ends = 0, False

    def again(self, paths=None):
        writer = Writer(0, paths or self.paths)
        writer.keys, writer.seen, writer.sent = self.keys, self.seen, self.sent
        return writer

    def work(self, path):
        client = Client(path)
        try:
            while not self.ends:
                for key in self.keys:
                    self.sent[key] += 1
                    self.seen[key] = max(self.seen[key], int(client.ask(f"INCR {key}")))
                    time.sleep(0.002)
                self.rounds += 1
        finally:
            client.close()

    def run(self):
        while not self.ends:
            for path in self.paths:
                try:
                    self.work(path)
                except OSError:
                    time.sleep(0.05)


class Link:
    """Between the nodes; may be cut for good."""

    def __init__(self, path, to):
        self.to, self.pairs, self.is_cut = to, [], False
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen(4)
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            here, _ = self.listener.accept()
            there = socket.socket(socket.AF_UNIX)
            try:
                if self.is_cut:
                    raise OSError("cut")
                there.connect(self.to)
            except OSError:
                here.close()
                continue
            self.pairs += [here, there]
            for a, b in ((here, there), (there, here)):
                threading.Thread(target=self.pump, args=(a, b), daemon=True).start()

    @staticmethod
    def pump(a, b):
        try:
            while data := a.recv(65536):
                b.sendall(data)
        except OSError:
            pass
        for s in (a, b):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def cut(self):
        self.is_cut = True
        for s in self.pairs:
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


class Nodes(VolumeCase):
    patience_s = 4 * PATIENCE_S     # a database and its clients on few CPUs

    def setUp(self):
        super().setUp()
        self.disks, self.pids, self.helpers, self.writers = {}, {}, [], []
        self.other = OTHER
        with open(os.path.join(self.dir, "db.img"), "wb") as f:
            f.truncate(2 * HALF)
        self.image = self.volume("db", shared="yes")
        self.start()
        for name in OTHER:
            os.mkdir(self.at(name))
            self.done("attach", volume="db", attachment=name)
        with open(self.at("secret"), "w", encoding="ascii") as f:
            os.fchmod(f.fileno(), 0o600)
            f.write("the secret of this database\n")

    def tearDown(self):
        # A disk that is stopped holds its node up: it goes first.
        for process in (*self.disks.values(), *self.helpers):
            process.kill()
            process.wait()
        super().tearDown()

    def at(self, name):
        return os.path.join(self.dir, name)

    def begin(self, name, *options):
        """Start a node on its half of the volume."""
        peer = self.other[name]
        server = [os.path.join(BIN, "oltp-server"), "--cpus", "0", "--quiet", "--unix",
                  self.at(name + ".sock"), "--control", self.at(name + ".control"),
                  "--durability", "commit", "--keys", "20000", "--volume", self.at(name + "/own"),
                  "--fence-nodes", f"{name},{peer}", "--fence-peer-volume",
                  self.at(name + "/peer"), "--fence-after-s", str(AFTER_S), *options]
        disk = [sys.executable, NBD_FILE, self.nbd, "db@" + name, self.at(name),
                f"own={PLACES[name]}:{HALF}", f"peer={PLACES[peer]}:{HALF}"]
        with open(self.log_path, "ab") as log:
            self.disks[name] = subprocess.Popen([*disk, "--", *server], stdout=subprocess.PIPE,
                                                stderr=log)
        self.pids[name] = int(self.disks[name].stdout.readline())
        self.wait_until(lambda: self.status(name), f"{name} starts", self.disks[name])

    def begin_both(self, *fence):
        self.begin("a", "--relocatable", "--volume-format", *fence)
        self.begin("b", "--relocate-listen", "unix:" + self.at("link"), "--volume-format", *fence)

    def fenced(self, secret="secret"):
        """Start ebb-fenced; return what nodes need to reach it."""
        with open(self.log_path, "ab") as log:
            process = subprocess.Popen(
                [os.path.join(BIN, "ebb-fenced"), "--listen", "unix:" + self.at("fenced"),
                 "--volume", "db", "--secret", self.at(secret), "--control",
                 self.at("run/control.sock")], stdout=log, stderr=log)
        self.helpers.append(process)
        self.wait_until(lambda: os.path.exists(self.at("fenced")), "ebb-fenced starts", process)
        return process

    def remote(self):
        return "--fence", "unix:" + self.at("fenced"), "--fence-secret", self.at("secret")

    def direct(self):
        return "--fence", "unix:" + self.at("run/control.sock"), "--fence-volume", "db"

    def say(self, name, line):
        client = socket.socket(socket.AF_UNIX)
        with client:
            client.settimeout(10)
            client.connect(self.at(name + ".control"))
            client.sendall(line.encode() + b"\n")
            return client.makefile().readline()

    def status(self, name):
        try:
            return json.loads(self.say(name, "relocate-status"))
        except (OSError, ValueError):
            return None

    def owned(self, name):
        return (self.status(name) or {"units": {"owned": 0}})["units"]["owned"]

    def move(self, link="link", source="a", target="b"):
        """Writers on both nodes, and units on both. The move takes as many seconds as there are
        clients of the source: so nobody has to hurry."""
        self.held = [Client(self.at(source + ".sock")) for _ in range(60)]
        paths = [self.at(name + ".sock") for name in (source, target)]
        turned = [paths[i % 2:] + paths[:i % 2] for i in range(WRITERS)]
        self.writers = ([w.again(p) for w, p in zip(self.writers, turned)] or
                        [Writer(i, p) for i, p in enumerate(turned)])
        for writer in self.writers[::2]:
            writer.start()
        self.wait_until(lambda: all(w.rounds > 1 for w in self.writers[::2]), "writers write")
        probe = Client(self.at(source + ".sock"))
        for i in range(64):
            probe.ask(f"SET probe:{i} old")
        answer = self.say(source, f"relocate unix:{self.at(link)} "
                          f"unix:{self.at(target + '.sock')} fixed 1 limit-s 600")
        self.assertEqual(answer, "ok\n")
        for writer in self.writers[1::2]:
            writer.start()
        self.wait_until(lambda: all(w.rounds > 1 for w in self.writers), "writers write")
        self.wait_until(lambda: self.turns_away(source), "the source lets nobody in any more")
        self.wait_until(lambda: self.owned(source) > 8 and self.owned(target) > 8,
                        "both have units")
        for name in (source, target):
            self.assertEqual(self.status(name)["fence"], "open", self.status(name))
        probe.close()

    def turns_away(self, name):
        try:
            client = Client(self.at(name + ".sock"))
            with client.socket:
                client.ask("PING")
        except ConnectionError:
            return True
        return False

    def first_answers(self, name, since):
        """Seconds until the node answers again, and until it answers for every key."""
        first = None
        for i in range(64):
            while True:
                try:
                    client = Client(self.at(name + ".sock"), 60)
                    client.ask(f"SET probe:{i} new")
                    client.close()
                    break
                except OSError:
                    time.sleep(0.01)
            first = first or time.monotonic() - since
        return first, time.monotonic() - since

    def survive(self, winner, since, what):
        first, every = self.first_answers(winner, since)
        print(f"{what}: {winner} answers after {first:.2f} s, for all keys after {every:.2f} s",
              end=" ... ", flush=True)
        # A node whose disk is stuck still gives units that nobody has written to: so the other one
        # may answer for every key before it has fenced anybody.
        self.wait_until(lambda: self.status(winner)["fence"] == "won" and
                        self.owned(winner) == 4096, "the winner has all units")
        status = self.status(winner)
        self.assertEqual(status["error"], "", status)
        self.assertGreater(status["recovered"], 0, status)
        states = {t["name"]: t["state"]
                  for t in self.done("attachments", volume="db")["access"]["attachments"]}
        self.assertEqual(states, {winner: "open", self.other[winner]: "fenced"})

    def check(self, winner):
        """All that was acknowledged is there, once; also after the winner was killed."""
        rounds = [writer.rounds for writer in self.writers]
        self.wait_until(lambda: all(w.rounds > n + 1 for w, n in zip(self.writers, rounds)),
                        "writers go on")
        self.rest()
        self.check_keys(winner)
        os.kill(self.pids[winner], signal.SIGKILL)
        self.disks[winner].wait()
        fence = self.remote() if self.helpers else self.direct()
        kind = (["--relocatable"] if winner == "a" else
                ["--relocate-listen", "unix:" + self.at("link")])
        self.begin(winner, *kind, "--recover", *fence)
        self.check_keys(winner)

    def check_keys(self, winner):
        client = Client(self.at(winner + ".sock"))
        for writer in self.writers:
            for key in writer.keys:
                found = int(client.ask(f"INCRBY {key} 0"))
                self.assertTrue(0 < writer.seen[key] <= found <= writer.sent[key],
                                (key, writer.seen[key], found, writer.sent[key]))
        keys, cursor = [], None
        while cursor != "0":
            cursor, some = client.ask(f"SCAN {cursor or 0} COUNT 100")
            keys += some
            self.assertLess(len(keys), 100000, "a scan that does not end")
        self.assertEqual(len(keys), len(set(keys)))
        mine = [key for key in keys if key.startswith(("count:", "probe:"))]
        self.assertEqual(len(mine), WRITERS * KEYS + 64)
        self.assertEqual(int(client.ask("DBSIZE")), len(keys))
        client.close()

    def half(self, name):
        with open(self.image, "rb") as f:
            f.seek(PLACES[name])
            return hashlib.sha256(f.read(HALF)).hexdigest()

    def load(self):
        """Requests come at a rate, and may fail while nobody answers."""
        load = subprocess.Popen(
            [os.path.join(BIN, "oltp-load"), "--connect",
             f"unix:{self.at('a.sock')},unix:{self.at('b.sock')}", "-c", "8", "--rate", "40", "-s",
             "20", "--mix", "count=70,get=30", "--rows", "200", "--value-bytes", "100",
             "--counters", "50", "--wait-ms", "5000", "--load", "--verify"],
            stdout=subprocess.PIPE, text=True)
        self.helpers.append(load)
        return load

    def killed(self, loser, fence):
        self.begin_both(*fence)
        load = self.load()
        self.move()
        since = time.monotonic()
        os.kill(self.pids[loser], signal.SIGKILL)
        self.survive(OTHER[loser], since, "killed")
        summary = json.loads(load.communicate(timeout=self.patience_s)[0].splitlines()[-1])
        self.assertEqual(summary["counters"]["lost"], 0, summary)
        self.assertGreater(summary["counters"]["acknowledged"], 0, summary)
        print(f"{summary['failures']} of {summary['arrived']} requests failed",
              end=" ... ", flush=True)
        self.check(OTHER[loser])

    def test_source_killed(self):
        self.fenced()
        self.killed("a", self.remote())

    def test_target_killed(self):
        self.killed("b", self.direct())

    def rest(self):
        for writer in self.writers:
            writer.ends = True
        for writer in self.writers:
            writer.join()

    def resume(self):
        """Writers that go on where those have ended."""
        self.writers = [writer.again() for writer in self.writers]
        for writer in self.writers:
            writer.start()

    def stand_still(self, loser, held, writes):
        """Stop a node, and ask it things that it finds when it goes on; return since when it is
        stopped, and the clients that have asked."""
        asked = []
        for i, client in enumerate(held):
            key = f"count:{'ab'.index(loser)}:{i % KEYS}"
            try:
                client.ask(f"GET {key}")
                asked.append((client, ("GET " if i % 3 or not writes else "INCR ") + key))
            except OSError:
                client.close()
        self.assertGreater(len(asked), 8)
        if not writes:
            # Until its log has nothing to write any more: a write that fails would tell it.
            time.sleep(2)
        since = time.monotonic()
        os.kill(self.pids[loser], signal.SIGSTOP)
        self.wait_until(lambda: self.is_stopped(loser), "it is stopped")
        sent = []
        for client, line in asked:
            try:
                client.send(line)
                sent.append(client)
            except OSError:
                # It was sent to the other node before this one stood still.
                client.close()
        self.assertGreater(len(sent), 4)
        return since, sent

    def is_stopped(self, name):
        """All threads: until the one that got the signal runs, the others go on."""
        tasks = f"/proc/{self.pids[name]}/task"
        for task in os.listdir(tasks):
            with open(f"{tasks}/{task}/stat", encoding="utf-8") as f:
                if f.read().rpartition(")")[2].split()[0] != "T":
                    return False
        return True

    def stuck(self, loser, writes):
        self.fenced()
        self.begin_both(*self.remote())
        self.move()
        held = self.held if loser == "a" else [Client(self.at("b.sock")) for _ in range(20)]
        if not writes:
            self.rest()
        since, asked = self.stand_still(loser, held, writes)
        self.survive(OTHER[loser], since, "stuck")
        if not writes:
            self.resume()
        rounds = [writer.rounds for writer in self.writers]
        self.wait_until(lambda: all(w.rounds > n + 1 for w, n in zip(self.writers, rounds)),
                        "the keys change")
        before = self.half(loser)
        os.kill(self.pids[loser], signal.SIGCONT)
        self.assert_lost(loser, asked)
        self.check(OTHER[loser])
        self.assertEqual(self.half(loser), before)

    def assert_lost(self, loser, asked):
        for client in asked:
            self.assert_no_answer(client)
        self.wait_until(lambda: self.status(loser)["fence"] == "lost" or
                        self.status(loser)["error"], "it stops")

    def test_onward(self):
        """a stands still and is fenced by b. b goes on to move the database to c, which has what
        was a's half of the volume; then b stands still, too, and is fenced by c. When they go on,
        neither writes a byte, nor answers."""
        self.fenced()
        self.begin_both(*self.remote())
        self.move()
        since, asked_a = self.stand_still("a", self.held, True)
        self.survive("b", since, "a stuck")
        self.rest()
        os.kill(self.pids["b"], signal.SIGKILL)
        self.disks["b"].wait()
        self.done("detach", volume="db", attachment="a")
        self.done("attach", volume="db", attachment="c")
        os.mkdir(self.at("c"))
        self.other = {"b": "c", "c": "b"}
        self.begin("b", "--relocatable", "--recover", *self.remote())
        self.begin("c", "--relocate-listen", "unix:" + self.at("link"), "--volume-format",
                   "--force", *self.remote())
        self.move(source="b", target="c")
        since, asked_b = self.stand_still("b", self.held, True)
        self.survive("c", since, "b stuck")
        before = self.half("b")
        for name in "a", "b":
            os.kill(self.pids[name], signal.SIGCONT)
        self.assert_lost("a", asked_a)
        self.assert_lost("b", asked_b)
        # Had a written, c could not be started again on its half.
        self.check("c")
        self.assertEqual(self.half("b"), before)

    def test_stuck_writes(self):
        """A node that stands still, and goes on later, writes nothing."""
        self.stuck("a", True)

    def test_stuck_reads(self):
        """Nor does one that is asked for nothing but reads give an old answer."""
        self.stuck("b", False)

    def assert_no_answer(self, client):
        try:
            self.fail(f"answered: {client.reply()}")
        except OSError:
            client.close()

    def test_network_cut(self):
        """Both work, have the disk, and have lost each other: one goes on."""
        self.fenced()
        self.begin_both(*self.remote())
        link = Link(self.at("proxy"), self.at("link"))
        self.move("proxy")
        link.cut()
        since = time.monotonic()
        self.wait_until(lambda: "won" in (self.status("a")["fence"], self.status("b")["fence"]),
                        "one fences the other")
        winner = next(name for name in PLACES if self.status(name)["fence"] == "won")
        self.survive(winner, since, "network cut")
        before = self.half(OTHER[winner])
        self.wait_until(lambda: self.status(OTHER[winner])["fence"] == "lost", "it has lost")
        self.check(winner)
        self.assertEqual(self.half(OTHER[winner]), before)

    def disk_cut(self, loser):
        self.fenced()
        self.begin_both(*self.remote())
        self.move()
        since = time.monotonic()
        self.disks[loser].send_signal(signal.SIGSTOP)
        self.survive(OTHER[loser], since, "disk cut")
        before = self.half(loser)
        self.disks[loser].send_signal(signal.SIGCONT)
        self.wait_until(lambda: self.status(loser)["fence"] == "lost" or
                        self.status(loser)["error"], "it stops")
        self.assertEqual(self.half(loser), before)
        self.check(OTHER[loser])
        self.assertEqual(self.half(loser), before)

    def test_disk_of_source_cut(self):
        self.disk_cut("a")

    def test_disk_of_target_cut(self):
        self.disk_cut("b")

    def test_other_secret(self):
        """Nobody fences with the secret of another database; with the right one it goes on."""
        with open(self.at("other"), "w", encoding="ascii") as f:
            os.fchmod(f.fileno(), 0o600)
            f.write("the secret of another database\n")
        right = self.fenced()
        self.begin_both(*self.remote())
        self.move()
        right.terminate()
        self.assertEqual(right.wait(PATIENCE_S), 0)
        wrong = self.fenced("other")
        since = time.monotonic()
        os.kill(self.pids["a"], signal.SIGKILL)
        time.sleep(3 * AFTER_S)
        self.assertEqual(self.status("b")["fence"], "unknown")
        access = self.done("attachments", volume="db")["access"]
        states = {t["state"] for t in access["attachments"]}
        self.assertEqual(states, {"open"})
        wrong.terminate()
        wrong.wait(PATIENCE_S)
        self.fenced()
        self.survive("b", since, "killed, and ebb-fenced with another secret meanwhile")
        self.check("b")
