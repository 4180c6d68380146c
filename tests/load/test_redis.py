# SPDX-License-Identifier: GPL-2.0-or-later
"""oltp-load against redis-server."""
import signal
import socket
import time

from rig import ROWS, LoadCase

MIX = "select=20,update=40,insert=20,delete=20,get=5,set=5,count=10"


class Redis(LoadCase):
    def test_every_kind_is_answered(self):
        for version in ("2", "3"):
            address, server = self.redis()
            lines = self.run_load("--connect", address, "--resp", version, "--load", "--mix", MIX,
                                  "--rate", "1000", "--seconds", "2", "--poisson", "--verify",
                                  "--connections", "20")
            self.assert_sums(lines)
            summary = lines[-1]
            self.assertEqual(summary["failures"], 0)
            self.assertAlmostEqual(summary["arrived"], 2000, delta=250)
            self.assertEqual(summary["nodes"]["0"]["connections"], 20)
            self.assertGreater(summary["counters"]["acknowledged"], 50)
            self.assertGreater(summary["all"]["p50_us"], 0)
            self.assertGreaterEqual(summary["all"]["p99_us"], summary["all"]["p50_us"])
            self.assertGreaterEqual(summary["all"]["max_us"], summary["all"]["p99_us"])
            self.assertGreaterEqual(summary["all"]["mean_us"], summary["all"]["service_mean_us"])
            counted = sum(int(self.redis_cli(address, "get", key) or 0) for key in
                          self.redis_cli(address, "keys", "counter:*").split())
            self.assertEqual(counted, summary["counters"]["acknowledged"])
            self.assertTrue(self.redis_cli(address, "get", "row:0").startswith("row:0|"))
            self.assertEqual(self.redis_cli(address, "exists", f"row:{ROWS - 1}").strip(), "1")
            server.terminate()
            server.wait()

    def test_looks_on_and_counts_by_kind(self):
        address, _ = self.redis()
        lines = self.run_load("--connect", address, "--load", "--mix", "50/30/10/10", "--rate",
                              "300", "--seconds", "2.5", "--observe", "--connections", "4")
        self.assert_sums(lines)
        *seconds, summary = lines
        node = seconds[1]["nodes"]["0"]
        self.assertGreater(node["cpu_s"], 0)
        self.assertIsNone(node["link_sent_bytes"])
        self.assertNotIn("cpu_s", summary["nodes"]["0"])
        self.assertEqual(list(summary["kinds"]), ["select", "update", "insert", "delete"])
        self.assertEqual(sum(kind["done"] for kind in summary["kinds"].values()),
                         summary["all"]["done"])
        self.assertGreater(summary["kinds"]["select"]["done"],
                           summary["kinds"]["insert"]["done"])

    def test_over_tcp(self):
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        self.redis("--port", str(port), "--bind", "127.0.0.1")
        for host in ("127.0.0.1", "localhost"):
            summary = self.run_load("--connect", f"{host}:{port}", "--load", "--rate", "200",
                                    "--seconds", "0.5", "--connections", "5")[-1]
            self.assertEqual((summary["arrived"], summary["failures"]), (100, 0))
            self.assertEqual(summary["nodes"]["0"]["address"], f"{host}:{port}")

    def test_rate_is_kept_and_evenly_spaced(self):
        address, _ = self.redis()
        lines = self.run_load("--connect", address, "--load", "--rate-schedule", "0:200,1:400",
                              "--seconds", "2")
        self.assertEqual(lines[-1]["arrived"], 600)
        self.assertEqual(lines[-1]["failures"], 0)

    def test_broken_connections_lose_no_update(self):
        address, _ = self.redis()
        load = self.start("--connect", address, "--load", "--mix", "select=1,count=9", "--rate",
                          "4000", "--seconds", "1000", "--verify", "--connections", "10")
        killed = 0
        self.assertIn('"second"', load.stdout.readline())
        while killed < 100:
            killed += int(self.redis_cli(address, "client", "kill", "type", "normal"))
            time.sleep(0.02)
        summary = self.interrupt(load)[-1]
        counters = summary["counters"]
        self.assertEqual((counters["lost"], counters["extra"]), (0, 0))
        self.assertGreater(counters["acknowledged"], 100)
        # A select is sent again; an update may have been executed, and fails.
        self.assertEqual(summary["failures"], summary["failed"]["broken"])
        self.assertEqual(summary["failed"]["broken"], counters["unknown"])

    def test_a_server_that_stands_still(self):
        address, server = self.redis()
        load = self.start("--connect", address, "--load", "--rate", "500", "--seconds", "1000",
                          "--connections", "5", "--wait-ms", "1000")
        self.assertIn('"second"', load.stdout.readline())
        server.send_signal(signal.SIGSTOP)
        time.sleep(1.8)
        server.send_signal(signal.SIGCONT)
        summary = self.interrupt(load)[-1]
        # What waited for a second was dropped; the five under way were answered in the end.
        self.assertEqual(summary["failures"], summary["failed"]["queue"])
        self.assertGreater(summary["failed"]["queue"], 200)
        self.assertGreater(summary["all"]["max_us"], 1.5e6)
        self.assertEqual(summary["arrived"], summary["all"]["done"] + summary["failures"])

    def test_no_answer_in_time(self):
        address, server = self.redis()
        load = self.start("--connect", address, "--load", "--rate", "100", "--seconds", "1000",
                          "--connections", "2", "--answer-ms", "200", "--open-ms", "100",
                          "--wait-ms", "100", "--mix", "set=1")
        self.assertIn('"second"', load.stdout.readline())
        server.send_signal(signal.SIGSTOP)
        time.sleep(1)
        summary = self.interrupt(load)[-1]
        server.send_signal(signal.SIGCONT)
        self.assertGreaterEqual(summary["failed"]["timeout"], 1)
        self.assertGreater(summary["failed"]["queue"], 10)
        self.assertEqual(summary["nodes"]["0"]["connections"], 0)

    def test_errors_and_wrong_answers_are_counted(self):
        address, _ = self.redis()
        self.run_load("--connect", address, "--load", "--seconds", "0.1")
        self.redis_cli(address, "config", "set", "maxmemory", "1")
        lines = self.run_load("--connect", address, "--mix", "select=1,update=1", "--rate", "100",
                              "--seconds", "0.5")
        self.assertGreater(lines[-1]["failed"]["error"], 5)
        self.assertEqual(lines[-1]["failures"], lines[-1]["failed"]["error"])
        self.assertIn("OOM", lines[-1]["error"])
        self.redis_cli(address, "config", "set", "maxmemory", "0")
        self.redis_cli(address, "flushall")
        lines = self.run_load("--connect", address, "--mix", "select=1", "--rate", "100",
                              "--seconds", "0.5", "--verify", status=1)
        self.assertEqual(lines[-1]["failures"], lines[-1]["failed"]["wrong"])
        self.assertEqual(lines[-1]["all"]["done"], 0)

    def test_password(self):
        address, _ = self.redis("--requirepass", "secret")
        with open(self.path("good"), "w", encoding="utf-8") as f:
            f.write("secret\n")
        with open(self.path("bad"), "w", encoding="utf-8") as f:
            f.write("other\n")
        for version in ("2", "3"):
            options = ("--connect", address, "--resp", version, "--seconds", "0", "--load",
                       "--password-file")
            self.end(self.start(*options, self.path("good")))
            _, said = self.end(self.start(*options, self.path("bad")), status=1)
            self.assertIn("WRONGPASS", said)

    def test_nobody_there(self):
        _, said = self.end(self.start("--connect", "unix:" + self.path("nowhere")), status=1)
        self.assertIn("nowhere: No such file", said)
