# SPDX-License-Identifier: GPL-2.0-or-later
"""Two nodes that write one volume: the one that is fenced can not, whatever it does."""
import hashlib
import json
import os
import signal
import threading
import time

from harness.lab import nbd
from rig import VolumeCase

LENGTH = 4096
SPAN = 256                  # blocks that a node writes over and over
PLACE = {"one": 0, "two": 16 << 20, "three": 0}


class Node(threading.Thread):
    """Keeps 16 writes open, no two the same, and connects again and again when it is cut off. Each
    has the node's number in every first byte of eight."""

    def __init__(self, path, volume, name):
        super().__init__(daemon=True)
        self.path, self.export, self.begin = path, f"{volume}@{name}", PLACE[name]
        self.number = list(PLACE).index(name)
        self.sent, self.done, self.failed, self.refused = 0, 0, 0, 0
        self.ends = False
        self.start()

    def run(self):
        while not self.ends:
            try:
                self.work(nbd.Client(self.path, self.export))
            except nbd.Refused:
                self.refused += 1
                time.sleep(0.01)
            except OSError:
                self.failed += 1
                time.sleep(0.01)

    def work(self, client):
        for _ in range(16):
            self.send(client)
        while not self.ends:
            error, _ = client.reply()
            if error:
                raise OSError(error, "a write failed")
            self.done += 1
            self.send(client)
        client.close()

    def send(self, client):
        self.sent += 1
        data = (self.number << 56 | self.sent).to_bytes(8, "big") * (LENGTH // 8)
        client.send(nbd.CMD_WRITE, self.begin + self.sent % SPAN * LENGTH, LENGTH, data)

    def stop(self):
        self.ends = True
        self.join()


class Fence(VolumeCase):
    def share(self, iops=0):
        """Start a server with a volume that two nodes write; return the generation."""
        self.path = self.volume("a", shared="yes")
        self.server = self.start(iops=iops)
        self.done("attach", volume="a", attachment="one")
        return self.done("attach", volume="a", attachment="two")["access"]["generation"]

    def node(self, name):
        node = Node(self.nbd, "a", name)
        self.addCleanup(node.stop)
        self.wait_until(lambda: node.done > 16, "it writes")
        return node

    def nodes(self):
        return [self.node(name) for name in ("one", "two")]

    def fence(self, name, by, generation):
        return self.ask("fence", volume="a", attachment=name, by=by, generation=generation)

    def in_background(self, *args):
        result = []
        thread = threading.Thread(target=lambda: result.append(self.fence(*args)))
        thread.start()
        return thread, result

    def states(self):
        access = self.done("attachments", volume="a")["access"]
        return {t["name"]: t["state"] for t in access["attachments"]}

    def written(self, name):
        """What is in the file where this node writes."""
        with open(self.path, "rb") as f:
            f.seek(PLACE[name])
            return hashlib.sha256(f.read(SPAN * LENGTH)).hexdigest()

    def is_fenced_on_disk(self):
        with open(os.path.join(self.dir, "state/volumes.json"), encoding="utf-8") as f:
            return any(t["fenced"] for t in json.load(f)["access"]["a"]["attachments"])

    def check_fenced(self, loser, winner):
        """Not one byte of the loser comes to the volume, and the winner goes on."""
        before, done, refused = self.written("one"), winner.done, loser.refused
        self.wait_until(lambda: loser.refused > refused, "the loser is refused")
        self.wait_until(lambda: winner.done > done + 16, "the winner goes on")
        time.sleep(1)
        self.assertEqual(self.written("one"), before)
        self.assertEqual(self.states(), {"one": "fenced", "two": "open"})

    def stuck(self):
        """Stop the storage daemon, so that what is to be closed is not; return how to go on."""
        pid = self.done("volumes")["server"]["pid"]
        os.kill(pid, signal.SIGSTOP)
        self.addCleanup(lambda: os.path.exists(f"/proc/{pid}") and os.kill(pid, signal.SIGCONT))
        return pid

    def test_in_flight(self):
        generation = self.share(iops=60)
        one, two = self.nodes()
        answer = self.fence("one", "two", generation)
        before = self.written("one")
        self.assertTrue(answer["ok"], answer)
        self.assertEqual(answer["access"]["generation"], generation + 1)
        self.check_fenced(one, two)
        self.assertEqual(self.written("one"), before)
        self.assertGreater(one.failed, 0)
        self.assertEqual(two.failed, 0)
        self.stop(self.server)
        self.start()
        self.wait_until(lambda: self.states()["two"] == "open", "it is open")
        self.check_fenced(one, two)

    def test_third_node(self):
        """One is fenced by two, two by three, which has one's place: neither comes back, though
        both try all the time, also after the server was started again."""
        generation = self.share()
        one, two = self.nodes()
        self.assertTrue(self.fence("one", "two", generation)["ok"])
        self.done("detach", volume="a", attachment="one")
        generation = self.done("attach", volume="a", attachment="three")["access"]["generation"]
        three = self.node("three")
        self.assertEqual((two.refused, two.failed), (0, 0))
        self.assertTrue(self.fence("two", "three", generation)["ok"])
        for again in False, True:
            if again:
                self.stop(self.server)
                self.start()
                self.wait_until(lambda: self.states()["three"] == "open", "it is open")
            refused, done = (one.refused, two.refused), three.done
            self.wait_until(lambda: one.refused > refused[0] + 100 and
                            two.refused > refused[1] + 100 and three.done > done + SPAN,
                            "one and two are refused, and three goes on")
            self.assertEqual(self.states(), {"two": "fenced", "three": "open"})
        three.stop()
        with open(self.path, "rb") as f:
            self.assertEqual(set(f.read(SPAN * LENGTH)[::8]), {three.number})

    def test_first_wins(self):
        generation = self.share()
        threads = [self.in_background("one", "two", generation),
                   self.in_background("two", "one", generation)]
        for thread, _ in threads:
            thread.join()
        results = [result[0] for _, result in threads]
        self.assertEqual(sorted(r["ok"] for r in results), [False, True])
        error = next(r["error"] for r in results if not r["ok"])
        self.assertEqual(error["code"], "fenced")
        self.assertIn(f"the generation is {generation + 1}", error["message"])
        self.assertEqual(sorted(self.states().values()), ["fenced", "open"])
        # An answer that was lost.
        names = ("one", "two") if results[0]["ok"] else ("two", "one")
        self.assertEqual(self.fence(*names, generation)["access"]["generation"], generation + 1)

    def test_stale(self):
        generation = self.share()
        self.done("detach", volume="a", attachment="one")
        self.done("attach", volume="a", attachment="one")
        self.assertIn(f"is {generation + 2}, not {generation}",
                      self.refused("stale", "fence", volume="a", attachment="one", by="two",
                                   generation=generation))
        self.assertEqual(self.states(), {"one": "open", "two": "open"})
        # By hand.
        self.done("fence", volume="a", attachment="one", generation=generation + 2)
        self.refused("exists", "attach", volume="a", attachment="one")
        self.refused("failed", "attach", volume="a", attachment="three")
        self.done("detach", volume="a", attachment="one")
        self.assertEqual(self.states(), {"two": "open"})
        self.refused("no-such-attachment", "fence", volume="a", attachment="one",
                     generation=generation + 4)
        self.refused("bad-value", "fence", volume="a", attachment="two", by="two",
                     generation=generation + 4)
        self.refused("bad-request", "fence", volume="a", attachment="two")
        self.assertEqual(self.qemu_io("a", "write 0 4k").returncode, 1)
        self.assertEqual(self.qemu_io("a@two", "write 0 4k").returncode, 0)

    def test_storage_daemon_killed(self):
        generation = self.share()
        one, two = self.nodes()
        pid = self.stuck()
        thread, result = self.in_background("one", "two", generation)
        self.wait_until(self.is_fenced_on_disk, "the fence is on disk")
        self.assertEqual(self.states()["one"], "fencing")
        self.assertEqual(result, [])
        os.kill(pid, signal.SIGKILL)
        thread.join()
        self.assertTrue(result[0]["ok"], result)
        self.check_fenced(one, two)

    def test_server_killed(self):
        generation = self.share()
        one, two = self.nodes()
        pid = self.stuck()
        self.ask_and_leave("one", "two", generation)
        self.wait_until(self.is_fenced_on_disk, "the fence is on disk")
        self.server.kill()
        self.server.wait()
        self.launch()
        time.sleep(0.5)
        os.kill(pid, signal.SIGCONT)
        self.wait_until(self.is_up, "the next one serves")
        answer = self.fence("one", "two", generation)
        self.assertEqual(answer["access"]["generation"], generation + 1)
        self.check_fenced(one, two)

    def ask_and_leave(self, *args):
        def ask():
            try:
                self.fence(*args)
            except OSError:
                pass
        threading.Thread(target=ask, daemon=True).start()

    def test_server_killed_at_any_time(self):
        """Whenever it is killed, the fence stands or was never made, and can be made then."""
        generation = self.share()
        one, two = self.nodes()
        for i in range(5):
            self.ask_and_leave("one", "two", generation)
            time.sleep(i * 0.002)
            self.server.kill()
            self.server.wait()
            self.server = self.start()
            self.wait_until(lambda: self.states()["two"] == "open", "it is open")
            self.assertTrue(self.fence("one", "two", generation)["ok"])
            self.check_fenced(one, two)
            self.done("detach", volume="a", attachment="one")
            generation = self.done("attach", volume="a",
                                   attachment="one")["access"]["generation"]

    def test_not_saved(self):
        generation = self.share()
        one, two = self.nodes()
        blocked = os.path.join(self.dir, "state/volumes.json.new")
        os.mkdir(blocked)
        self.refused("not-saved", "fence", volume="a", attachment="one", by="two",
                     generation=generation)
        self.refused("not-saved", "detach", volume="a", attachment="one")
        done = one.done
        self.wait_until(lambda: one.done > done + 16, "it goes on")
        self.assertEqual(one.failed + two.failed, 0)
        os.rmdir(blocked)
        self.assertTrue(self.fence("one", "two", generation)["ok"])
        self.check_fenced(one, two)

    def test_removed(self):
        self.volume("b")
        self.start()
        path = self.volume("a")
        del self.volumes["a"]
        self.refused("bad-value", "attach", volume="b", attachment="one")
        for generation in (1, 2):
            self.done("volume-add", volume="a", tenant="t", file=path, shared="yes")
            access = self.done("attach", volume="a", attachment="one")["access"]
            self.assertEqual(access["generation"], generation)
            node = Node(self.nbd, "a", "one")
            self.wait_until(lambda node=node: node.done > 16, "it writes")
            self.done("volume-remove", volume="a")
            self.wait_until(lambda: len(self.done("volumes")["volumes"]) == 1, "it is gone")
            node.stop()
