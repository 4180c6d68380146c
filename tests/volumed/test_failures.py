# SPDX-License-Identifier: GPL-2.0-or-later
"""Servers that are killed and stopped, clients that send rubbish, disks that are full or broken."""
import json
import os
import re
import signal
import socket
import subprocess
import threading
import time

from harness.lab import nbd
from rig import BIN, QEMU, VolumeCase

ENOSPC, EIO = 28, 5


class Failures(VolumeCase):
    def writer(self, volume, **options):
        """Start a client of QEMU that writes and verifies, and takes as long as the disk says."""
        commands = []
        for i in range(120):
            commands += [f"write -q -P {i} {i * 64}k 64k"]
        for i in range(120):
            commands += [f"read -q -P {i} {i * 64}k 64k"]
        result = []
        thread = threading.Thread(target=lambda: result.append(
            self.qemu_io(volume, *commands, **options)))
        thread.start()
        return thread, result

    def storage_pid(self):
        return self.done("volumes")["server"]["pid"]

    def served_by_another(self, pid):
        # In this order: the one that is up may be the one that was killed a moment ago.
        self.wait_until(lambda: self.storage_pid() not in (0, pid) and self.is_up(),
                        "another storage daemon serves")

    def check_writer(self, thread, result):
        thread.join(60)
        self.assertEqual(result[0].returncode, 0, result[0].stderr + result[0].stdout + self.log())
        self.assertNotIn("error", result[0].stdout + result[0].stderr)

    def test_killed_in_flight(self):
        self.volume("a")
        self.start(iops=150)
        thread, result = self.writer("a", reconnect_delay=20)
        self.wait_until(lambda: self.meters()["a"]["counters"]["writes"] > 20, "it writes")
        pid = self.storage_pid()
        os.kill(pid, signal.SIGKILL)
        self.served_by_another(pid)
        self.check_writer(thread, result)
        # What the first daemon counted is not lost, but for the time since the last look.
        counters = self.meters()["a"]["counters"]
        self.assertGreaterEqual(counters["reads"] + counters["writes"], 240 - 150)
        self.assertEqual(self.done("volumes")["server"]["restarts"], 1)

    def test_stopped_and_started_again(self):
        self.volume("a")
        server = self.start(iops=150)
        thread, result = self.writer("a", reconnect_delay=20)
        self.wait_until(lambda: self.meters()["a"]["counters"]["writes"] > 20, "it writes")
        self.stop(server)
        self.start(iops=150)
        self.check_writer(thread, result)
        self.assertEqual(self.events("storage_daemon_died"), [])

    def test_supervisor_killed(self):
        self.volume("a")
        server = self.start(iops=150)
        thread, result = self.writer("a", reconnect_delay=20)
        self.wait_until(lambda: self.meters()["a"]["counters"]["writes"] > 20, "it writes")
        server.kill()
        server.wait()
        self.start(iops=150)
        self.check_writer(thread, result)

    def test_supervisor_killed_and_storage_daemon_stuck(self):
        """The next server waits for it: two storage daemons would write to the same files."""
        self.volume("a")
        server = self.start()
        pid = self.storage_pid()
        os.kill(pid, signal.SIGSTOP)
        server.kill()
        server.wait()
        self.launch()
        time.sleep(1)
        begun = len(self.events("storage_daemon_started"))
        os.kill(pid, signal.SIGCONT)
        self.assertEqual(begun, 1, self.log())
        self.wait_until(self.is_up, "the next one serves")
        self.assertEqual(len(self.events("storage_daemon_started")), 2)

    def test_storage_daemon_hangs(self):
        """Each request is answered within some 5 s, and all is well when the daemon goes on."""
        self.volume("a")
        self.volume("b")
        server = self.start()
        pid = self.storage_pid()
        os.kill(pid, signal.SIGSTOP)
        self.addCleanup(lambda: os.path.exists(f"/proc/{pid}") and os.kill(pid, signal.SIGCONT))
        begin = time.monotonic()
        self.assertIn("is made when it does", self.refused("no-answer", "volume-set", volume="a",
                                                           reserve_iops=300))
        self.assertLess(time.monotonic() - begin, 15)
        self.wait_until(lambda: self.events("storage_daemon_hangs"), "the log says so")
        self.assertFalse(self.done("volumes")["server"]["answers"])
        begin = time.monotonic()
        self.assertIn("nothing is changed", self.refused("no-answer", "volume-set", volume="b",
                                                         reserve_iops=300))
        self.assertIn("does not answer", self.done("meters")["error"])
        self.assertLess(time.monotonic() - begin, 4)
        os.kill(pid, signal.SIGCONT)
        self.wait_until(lambda: self.events("storage_daemon_answers"), "the log says so")
        volumes = {v["name"]: v["reserve_iops"] for v in self.done("volumes")["volumes"]}
        self.assertEqual(volumes, {"a": 300, "b": None})
        self.assertTrue(self.done("volumes")["server"]["answers"])
        self.assertEqual(self.meters()["a"]["state"], "served")
        self.assertEqual(self.storage_pid(), pid)
        self.stop(server)

    def test_counters_outlive_the_storage_daemon(self):
        self.volume("a")
        self.start()
        for count in range(1, 4):
            self.assertEqual(self.qemu_io("a", "write 0 64k").returncode, 0)
            self.assertEqual(self.meters()["a"]["counters"]["writes"], count)
            pid = self.storage_pid()
            os.kill(pid, signal.SIGKILL)
            self.served_by_another(pid)
            self.assertEqual(self.meters()["a"]["counters"]["writes"], count)

    def test_added_volumes_survive(self):
        self.volume("a")
        server = self.start()
        path = self.volume("b")
        del self.volumes["b"]
        self.done("volume-add", volume="b", tenant="t", file=path, reserve_iops=7)
        self.assertEqual(self.qemu_io("b", "write -P 3 0 64k").returncode, 0)
        server.kill()
        server.wait()
        self.start()
        self.assertEqual(self.qemu_io("b", "read -P 3 0 64k").returncode, 0)
        volumes = {v["name"]: v for v in self.done("volumes")["volumes"]}
        self.assertEqual(volumes["b"]["reserve_iops"], 7)
        self.done("volume-remove", volume="b")
        self.wait_until(lambda: len(self.done("volumes")["volumes"]) == 1, "it is removed")
        self.assertNotEqual(self.qemu_io("b", "read 0 64k").returncode, 0)
        self.refused("bad-value", "volume-remove", volume="a")

    def test_removed_in_use(self):
        path = self.volume("b")
        del self.volumes["b"]
        self.volume("a")
        self.start()
        self.done("volume-add", volume="b", tenant="t", file=path, max_iops=5)
        load, = nbd.loads(self.nbd, "b", 16)
        self.wait_until(lambda: self.meters()["b"]["queued"] > 0, "requests wait")
        self.done("volume-remove", volume="b")
        self.wait_until(lambda: len(self.done("volumes")["volumes"]) == 1, "it is removed")
        load.join()
        self.assertIsInstance(load.lost, OSError)
        # It can be had again.
        self.done("volume-add", volume="b", tenant="t", file=path)

    def test_removed_with_a_long_queue(self):
        """Its clients have requests for a minute, by its maximum, beside one with a high weight."""
        self.remove_with_a_queue({"weight": 10000}, {"max_iops": 1, "weight": 1})

    def test_removed_beside_full_reservations(self):
        """Others are promised all that the disk does, and want it: its turn would never come."""
        self.remove_with_a_queue({"reserve_iops": 10000}, {})

    def remove_with_a_queue(self, of_other, of_removed):
        path = self.volume("b")
        del self.volumes["b"]
        self.volume("a", **of_other)
        self.settings["depth"] = 2
        self.start(iops=300)
        self.done("volume-add", volume="b", tenant="t", file=path, **of_removed)
        other = nbd.loads(self.nbd, "a", 64, 4)
        loads = nbd.loads(self.nbd, "b", 64, 4)
        self.wait_until(lambda: self.meters()["b"]["queued"] >= 60, "requests wait")
        begin = time.monotonic()
        self.done("volume-remove", volume="b")
        self.wait_until(lambda: len(self.done("volumes")["volumes"]) == 1, "it is removed")
        self.assertLess(time.monotonic() - begin, 10)
        for load in loads:
            load.join()
            self.assertIsInstance(load.lost, OSError)
        for load in other:
            load.stop()
            load.join()
            self.assertIsNone(load.lost)
        self.assertEqual(self.events("storage_daemon_refused"), [])

    def test_rubbish(self):
        self.volume("a")
        self.start()
        good = nbd.Client(self.nbd, "a")
        # Instead of an answer to the greeting, and instead of a request.
        first = nbd.connect(self.nbd)
        first.sendall(b"GET / HTTP/1.1\r\n\r\n" * 10)
        second = nbd.Client(self.nbd, "a")
        second.socket.sendall(b"rubbish " * 10)
        for client in (first, second.socket):
            # Until it is closed, or reset.
            try:
                while client.recv(4096):
                    pass
            except ConnectionResetError:
                pass
        self.wait_until(lambda: len(self.events("storage_daemon_says")) >= 2, "both are logged")
        self.assertIn("Disconnect client", self.log())
        self.assertEqual(good.ask(nbd.CMD_READ, 0, 4096)[0], 0)

    def test_many_control_clients(self):
        """One client too many is turned away: it does not take the place of the agent's."""
        self.volume("a")
        self.start()
        path = os.path.join(self.dir, "run/control.sock")
        clients = []
        for _ in range(33):
            clients.append(socket.socket(socket.AF_UNIX))
            self.addCleanup(clients[-1].close)
            clients[-1].settimeout(30)
            clients[-1].connect(path)
            if len(clients) < 33:
                clients[-1].sendall(b'{"cmd":"version"}\n')
                self.assertIn(b"uptime_s", clients[-1].recv(4096))
        self.assertIn(b"too-many-clients", clients[-1].recv(4096))
        clients[0].sendall(b'{"cmd":"version"}\n')
        self.assertIn(b"uptime_s", clients[0].recv(4096))

    def test_unknown_volume(self):
        self.volume("a")
        self.start()
        with self.assertRaisesRegex(nbd.Refused, "nope"):
            nbd.Client(self.nbd, "nope")
        self.refused("no-such-volume", "volume-set", volume="nope", reserve_iops=1)

    def test_errors_hit_their_tenant_alone(self):
        self.volume("full")
        self.volume("broken")
        self.volume("good")
        self.start(faults=f"full.img={ENOSPC},broken.img={EIO}")
        clients = {name: nbd.Client(self.nbd, name) for name in self.volumes}
        data = b"x" * 4096
        for _ in range(20):
            self.assertEqual(clients["full"].ask(nbd.CMD_WRITE, 0, 4096, data)[0], ENOSPC)
            self.assertEqual(clients["broken"].ask(nbd.CMD_WRITE, 0, 4096, data)[0], EIO)
            self.assertEqual(clients["good"].ask(nbd.CMD_WRITE, 0, 4096, data)[0], 0)
        # They can still read.
        self.assertEqual(clients["full"].ask(nbd.CMD_READ, 0, 4096)[0], 0)
        errors = {name: m["counters"]["errors"] for name, m in self.meters().items()}
        self.assertEqual(errors, {"full": 20, "broken": 20, "good": 0})

    def test_one_bad_volume_stops_no_other(self):
        self.volume("a")
        os.unlink(self.volume("missing"))
        self.start(dies=1)
        states = {v["name"]: v["state"] for v in self.done("volumes")["volumes"]}
        self.assertEqual(states, {"a": "served", "missing": "failed"})
        self.assertEqual(self.qemu_io("a", "read 0 64k").returncode, 0)
        # It is served as soon as it can be.
        self.volume("missing")
        self.wait_until(lambda: self.done("volumes", volume="missing")["volumes"][0]["state"] ==
                        "served", "it is served")
        self.assertEqual(len(self.events("volume_failed")), 1)

    def test_given_up(self):
        self.volume("a")
        self.env["EBB_STORAGE_DAEMON"] = "/bin/false"
        server = self.launch()
        self.assertEqual(server.wait(30), 1)
        self.assertEqual(len(self.events("storage_daemon_died")), 5)
        self.assertEqual(len(self.events("storage_daemon_given_up")), 1)

    def test_qcow2(self):
        self.volume("a", format="qcow2")
        subprocess.run([os.path.join(QEMU, "qemu-img"), "create", "-q", "-f", "qcow2",
                        self.volumes["a"]["file"], "64M"], check=True)
        self.start()
        result = self.qemu_io("a", "write -P 9 1M 1M", "write -z 4M 1M", "discard 8M 1M", "flush",
                              "read -P 9 1M 1M", "read -P 0 4M 1M")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        counters = self.meters()["a"]["counters"]
        self.assertGreater(counters["flushes"], 0)
        self.assertEqual(counters["zeroes"] + counters["discards"], 2)

    def test_large_requests_without_data(self):
        """Each is cut, so that it counts as several, and others get their turns in between."""
        self.volume("a")
        self.start()
        result = self.qemu_io("a", "discard 0 64M", "write -z 0 64M", "discard 1M 32M")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        counters = self.meters()["a"]["counters"]
        self.assertEqual((counters["discards"], counters["zeroes"]), (3, 2))
        self.assertEqual(counters["issued-units"] - counters["flushes"], 5)

    def test_second_server(self):
        self.volume("a")
        self.start()
        # It waits for the lock for as long as a storage daemon may take to end.
        other = self.launch()
        time.sleep(0.5)
        self.assertIsNone(other.poll())
        self.assertTrue(self.is_up())


class Control(VolumeCase):
    def test_bad_values(self):
        self.settings["capacity_iops"] = 1000
        self.volume("a", reserve_iops=600)
        self.volume("b")
        self.start()
        for value in (0, -1, "-1", "1.5", 1.5, "", "many", 10**12, True):
            self.assertIn("reserve_iops", self.refused("bad-value", "volume-set", volume="a",
                                                       reserve_iops=value))
        self.assertIn("1000", self.refused("overbooked", "volume-set", volume="b",
                                           reserve_iops=401))
        self.done("volume-set", volume="b", reserve_iops=400)
        self.refused("bad-value", "volume-set", volume="b", max_iops=399)
        self.refused("bad-value", "volume-set", volume="b", file="/etc/passwd")
        self.refused("bad-value", "volume-set", volume="b", colour="red")
        self.refused("bad-request", "volumes", colour="red")
        self.refused("unknown-command", "colour")
        self.refused("bad-value", "scheduler", depth=0)
        self.refused("bad-value", "scheduler", overbooking="lottery")
        self.refused("exists", "volume-add", volume="a", tenant="t", file="/x")
        self.refused("bad-request", "volume-add", volume="../a", tenant="t", file="/x")
        self.refused("bad-value", "volume-add", volume="c", tenant="t")
        self.refused("refused", "volume-add", volume="c", tenant="t", file="/nonexistent")
        server = self.done("volumes")["server"]
        self.assertEqual((server["promised_iops"], server["capacity_iops"]), (1000, 1000))

    def test_overbooking_allowed(self):
        self.settings.update(capacity_iops=1000, allow_overbooking="yes")
        self.volume("a", reserve_iops=600)
        self.volume("b", reserve_iops=600)
        self.start()
        self.assertEqual(self.done("volumes")["server"]["promised_iops"], 1200)

    def test_work_of_the_system(self):
        self.settings["capacity_iops"] = 1000
        self.system = {"reserve_iops": 100, "weight": 7}
        self.volume("a", reserve_iops=600)
        self.start()
        self.assertEqual(self.done("volumes")["server"]["promised_iops"], 700)
        self.refused("overbooked", "volume-set", volume="a", reserve_iops=901)
        copy = self.done("volume-add", volume="copy", tenant="system",
                         file=self.volume("copy"))["volume"]
        self.assertEqual((copy["reserve_iops"], copy["weight"]), (100, 7))
        self.qemu_io("copy", "write 0 64k")
        self.assertEqual(self.meters()["copy"]["tenant"], "system")
        counters = self.meters()["copy"]["counters"]
        self.assertEqual(counters["issued-units"] - counters["flushes"], 1)
        answer = self.done("calibrate", file=self.volume("b"))
        self.assertEqual(len(answer["points"]), 8)
        self.assertEqual(self.done("volumes")["server"]["promised_iops"], 700)

    def test_bad_configuration(self):
        self.settings["capacity_iops"] = 1000
        self.volume("a", reserve_iops=1001)
        self.assertEqual(self.launch().wait(30), 1)
        self.assertIn("1001 requests per second", self.log())
        self.volume("a", reserve_iops=0)
        self.assertEqual(self.launch().wait(30), 1)
        self.assertIn("reserve_iops=0: allowed: 1 to", self.log())

    def ebbctl(self, status, *args):
        env = dict(os.environ, EBB_VOLUMED_SOCKET=self.dir + "/run/control.sock")
        run = subprocess.run([os.path.join(BIN, "ebbctl"), "volumes", *args], timeout=60,
                             capture_output=True, text=True, check=False, env=env)
        self.assertEqual(run.returncode, status, run.stdout + run.stderr)
        return run.stdout + run.stderr

    def test_ebbctl(self):
        self.assertIn("ebb-volumed can not be reached", self.ebbctl(3))
        self.volume("a", reserve_iops=50)
        self.start()
        path = self.volume("b")
        self.assertRegex(self.ebbctl(0), r"(?m)^a +tenant-a +served +50 +- ")
        self.assertRegex(self.ebbctl(0, "add", "b", "tenant=t", "file=" + path), r"(?m)^b +t ")
        self.assertRegex(self.ebbctl(0, "set", "b", "reserve_iops=7", "weight=1"),
                         r"(?m)^b +t +served +7 +- +- +- +1 ")
        self.assertRegex(self.ebbctl(0, "set", "b", "reserve_iops=none"), r"(?m)^b +t +served +- ")
        # A name of digits is one.
        self.ebbctl(0, "add", "c", "tenant=t", "file=" + self.volume("c"), "shared=yes")
        self.assertRegex(self.ebbctl(0, "attach", "c", "attachment=1"), r"(?m)^1 +open ")
        self.ebbctl(0, "attach", "c", "attachment=2")
        self.assertRegex(self.ebbctl(0, "fence", "c", "attachment=1", "by=2", "generation=2"),
                         r"(?m)^1 +fenced +2 ")
        self.ebbctl(0, "remove", "c")
        self.assertIn("allowed: 1 to", self.ebbctl(1, "set", "b", "reserve_iops=-1"))
        self.assertIn("no volume", self.ebbctl(1, "list", "c"))
        self.assertIn("depth 5, overbooked: penalty",
                      self.ebbctl(0, "scheduler", "depth=5", "overbooking=penalty"))
        self.qemu_io("b", "write 0 256k", "flush")
        counters = json.loads(self.ebbctl(0, "--json", "meters", "b"))["meters"][0]["counters"]
        self.assertEqual(counters["written-bytes"], 256 << 10)
        # Four units, and one for each flush: a client flushes when it ends, too.
        units = 4 + counters["flushes"]
        self.assertGreater(units, 4)
        self.assertRegex(self.ebbctl(0, "meters"), fr"(?m)^b +t +[0-9.]+ +0 +{units} +0 ")
        self.ebbctl(0, "remove", "b")
        for wrong in (["colour"], ["set"], ["set", "b", "7"], ["remove"], ["list", "a", "b"]):
            self.ebbctl(2, *wrong)

    def test_brief_meters(self):
        self.volume("a", reserve_iops=50)
        self.start()
        self.qemu_io("a", "write 0 256k", "flush")
        brief, = self.done("meters", brief=True)["meters"]
        whole, = self.done("meters", volume="a", brief=False)["meters"]
        self.assertEqual(set(brief), {"name", "delay", "counters", "interval"})
        self.assertEqual(set(brief["counters"]), {
            "intervals", "violated-intervals", "charged", "early", "missed", "violated",
            "others-early", "others-promised", "slow", "overdue"})
        units = 4 + whole["counters"]["flushes"]
        self.assertEqual(brief["counters"]["charged"] + brief["counters"]["early"], units)
        self.assertEqual(brief["delay"], whole["delay"])
        self.refused("bad-request", "meters", brief=7)

    def test_ebbctl_of_large_requests(self):
        """Delays are of requests, each of which is 16 units."""
        self.settings["depth"] = 1
        self.volume("a", reserve_iops=8000)
        self.start(iops=50)
        load = nbd.Load(self.nbd, "a", 4, 1 << 20)
        load.start()
        self.wait_until(lambda: self.meters()["a"]["counters"]["due-requests"] > 50, "it reads")
        load.stop()
        load.join()

        def agree():
            mean_ms = self.meters()["a"]["delay"]["mean-ns"] / 1e6
            row = re.search("(?m)^a .*", self.ebbctl(0, "meters")).group().split()
            return mean_ms > 1 and abs(float(row[6]) - mean_ms) < 0.06
        # The last requests are counted some time after they ended.
        self.wait_until(agree, "ebbctl and the meters say the same")

    def test_calibration(self):
        self.volume("a", reserve_iops=50)
        self.start()
        path = self.volume("b")
        self.assertIn("No such file", self.refused("failed", "calibrate", file="/nonexistent"))
        self.refused("bad-value", "calibrate", file="b.img")
        load, = nbd.loads(self.nbd, "a", 4)
        answer = self.done("calibrate", file=path)
        # Calibration ends without a request open, the load does not.
        self.assertEqual(self.events("storage_daemon_says"), [])
        load.stop()
        self.assertIsNone(load.lost)
        self.assertEqual([p["depth"] for p in answer["points"]],
                         [1, 2, 4, 8, 16, 32, 64, 128])
        used = [p for p in answer["points"] if p["depth"] == answer["server"]["depth"]][0]
        most = max(p["iops"] for p in answer["points"])
        self.assertGreaterEqual(used["iops"], 0.9 * most)
        self.assertEqual(answer["server"]["capacity_iops"], used["iops"])
        self.assertGreater(answer["server"]["capacity_bytes"], 0)
        self.wait_until(lambda: len(self.done("volumes")["volumes"]) == 1, "it is removed")
        self.refused("overbooked", "volume-set", volume="a", reserve_iops=used["iops"] + 1)
        # It holds after a restart.
        self.stop(self.servers[0])
        self.start()
        self.assertEqual(self.done("volumes")["server"]["depth"], used["depth"])

    def test_many_connections(self):
        self.settings["max_connections"] = 4
        self.volume("a")
        self.start()
        clients = [nbd.Client(self.nbd, "a") for _ in range(4)]
        # One more waits, and gets its turn.
        late = nbd.connect(self.nbd)
        late.settimeout(0.3)
        with self.assertRaises(socket.timeout):
            late.recv(1)
        clients[0].close()
        late.settimeout(30)
        self.assertEqual(late.recv(8), b"NBDMAGIC")
