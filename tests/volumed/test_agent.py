# SPDX-License-Identifier: GPL-2.0-or-later
"""ebbd tells the volume server what SLAs promise. Its VMs are simulated: each has one disk, a
volume of its name."""
import json
import os
import signal
import subprocess

from harness.lab import nbd
from rig import BIN, PATIENCE_S, VolumeCase


class Agent(VolumeCase):
    def setUp(self):
        super().setUp()
        self.agent = None
        self.agents = []        # those before it that have not ended
        self.folder = "agent"
        self.agent_log_path = os.path.join(self.dir, "agent-log")

    def tearDown(self):
        for agent in self.agents + [self.agent]:
            if agent:
                agent.kill()
                agent.wait()
        super().tearDown()

    def start_agent(self, vms, *options):
        args = [os.path.join(BIN, "ebbd"), f"--dry-run={vms}"]
        folder = f"{self.dir}/{self.folder}"
        for option in ("host=emulated:1x4x1@0.2", f"run_dir={folder}", f"state_dir={folder}",
                       f"volume_socket={self.dir}/run/control.sock", *options):
            args += ["-o", option]
        with open(self.agent_log_path, "ab") as log:
            self.agent = subprocess.Popen(args, stdout=log, stderr=log)
        for n in range(1, vms + 1):
            self.wait_until(lambda name=f"simulated-{n}": self.vm(name).get("state") == "running",
                            "the VM runs", self.agent)

    def agent_log(self):
        with open(self.agent_log_path, encoding="utf-8") as f:
            return f.read()

    def ebbctl(self, *args):
        socket = f"{self.dir}/{self.folder}/control.sock"
        return subprocess.run([os.path.join(BIN, "ebbctl"), "--socket", socket, *args],
                              capture_output=True, text=True, timeout=PATIENCE_S, check=False)

    def vm(self, name):
        done = self.ebbctl("--json", "vms", name)
        return json.loads(done.stdout)["vms"][0] if done.returncode == 0 else {}

    def set(self, vm, *values):
        done = self.ebbctl("set", vm, *values)
        self.assertEqual(done.returncode, 0, done.stderr + self.agent_log())

    def wait_for(self, vm, state):
        """Return why the promise to the VM's volume is in that state, "" if it needs no reason."""
        self.wait_until(lambda: self.vm(vm)["volumes"][0]["state"] == state,
                        f"the promise to {vm} is {state}", self.agent)
        return self.vm(vm)["volumes"][0]["error"]

    def kept(self, volume):
        of, = self.done("volumes", volume=volume)["volumes"]
        return {key: of[key] for key in ("reserve_iops", "reserve_bytes", "max_iops", "max_bytes",
                                         "weight", "penalty")}

    def test_set_and_taken_back(self):
        self.volume("simulated-1")
        self.volume("other", reserve_iops=7)
        self.start()
        self.start_agent(1)
        self.assertEqual(self.vm("simulated-1")["volumes"][0]["state"], "none")
        self.set("simulated-1", "io.reserve-iops=300", "io.max-iops=400",
                 "io.simulated-1.reserve-bytes=5000000", "io.weight=9", "io.penalty=3")
        self.wait_for("simulated-1", "set")
        self.assertEqual(self.kept("simulated-1"),
                         {"reserve_iops": 300, "reserve_bytes": 5000000, "max_iops": 400,
                          "max_bytes": None, "weight": 9, "penalty": 3})
        self.assertIn("set", self.ebbctl("vms", "simulated-1").stdout)
        self.set("simulated-1", "io.reserve-iops=0", "io.max-iops=0", "io.weight=100",
                 "io.penalty=1", "io.simulated-1.reserve-bytes=default")
        nothing = {"reserve_iops": None, "reserve_bytes": None, "max_iops": None,
                   "max_bytes": None, "weight": 100, "penalty": 1}
        self.wait_until(lambda: self.kept("simulated-1") == nothing, "it is taken back")
        # Nobody's SLA speaks of this one.
        self.assertEqual(self.kept("other")["reserve_iops"], 7)
        self.agent.send_signal(signal.SIGTERM)
        self.assertEqual(self.agent.wait(PATIENCE_S), 0, self.agent_log())

    def test_vm_that_went_away_while_no_agent_ran(self):
        """Its promise is taken back by the next agent; one that was set by hand is not."""
        for name in ("simulated-1", "simulated-2", "by-hand"):
            self.volume(name)
        server = self.start()
        self.done("volume-set", volume="by-hand", reserve_iops=7)
        self.start_agent(2)
        for vm in ("simulated-1", "simulated-2"):
            self.set(vm, "io.reserve-iops=300")
            self.wait_for(vm, "set")
        self.agent.kill()
        self.agent.wait()
        self.start_agent(1)
        self.wait_until(lambda: self.kept("simulated-2")["reserve_iops"] is None,
                        "it is taken back", self.agent)
        owners = {v["name"]: v["owner"] for v in self.done("volumes")["volumes"]}
        self.assertEqual(owners["simulated-2"], None)
        self.assertEqual(self.kept("by-hand")["reserve_iops"], 7)
        self.stop(server)

    def test_two_agents(self):
        """Each takes back what it has set itself; one with the name of another is told of it."""
        for name in ("simulated-1", "simulated-2"):
            self.volume(name)
        server = self.start()
        self.done("volume-set", volume="simulated-2", reserve_iops=7, owner="ebbd:/run/other")
        self.start_agent(1)
        self.set("simulated-1", "io.reserve-iops=300")
        self.wait_for("simulated-1", "set")
        owners = {v["name"]: v["owner"] for v in self.done("volumes")["volumes"]}
        self.assertEqual(owners, {"simulated-1": f"ebbd:{self.dir}/agent",
                                  "simulated-2": "ebbd:/run/other"})
        first, self.agent = self.agent, None
        self.agents.append(first)
        self.folder = "second"
        self.start_agent(1, f"volume_owner=ebbd:{self.dir}/agent")
        self.set("simulated-1", "io.reserve-iops=200")
        self.assertIn("another program", self.wait_for("simulated-1", "waiting"))
        self.assertEqual(self.kept("simulated-1")["reserve_iops"], 300)
        # When the first one has ended, this one has the name and all that goes with it.
        first.send_signal(signal.SIGTERM)
        self.assertEqual(first.wait(PATIENCE_S), 0)
        self.wait_for("simulated-1", "set")
        self.assertEqual(self.kept("simulated-1")["reserve_iops"], 200)
        self.assertEqual(self.kept("simulated-2")["reserve_iops"], 7)
        self.stop(server)

    def test_server_killed_and_started_again(self):
        self.volume("simulated-1")
        server = self.start()
        self.start_agent(1)
        self.set("simulated-1", "io.reserve-iops=300")
        self.wait_for("simulated-1", "set")
        server.kill()
        server.wait()
        self.assertIn("volume server", self.wait_for("simulated-1", "waiting"))
        self.assertIn("(waiting)", self.ebbctl("explain", "simulated-1").stdout)
        self.assertIn("the volume server does not answer", self.agent_log())
        # The configuration of the new one promises nothing.
        self.start()
        self.wait_for("simulated-1", "set")
        self.assertEqual(self.kept("simulated-1")["reserve_iops"], 300)

    def test_agent_before_the_server(self):
        self.volume("simulated-1")
        self.start_agent(1)
        self.set("simulated-1", "io.reserve-iops=300")
        self.assertIn("No such file", self.wait_for("simulated-1", "waiting"))
        self.start()
        self.wait_for("simulated-1", "set")
        self.assertEqual(self.kept("simulated-1")["reserve_iops"], 300)

    def test_refused(self):
        # There is no volume simulated-3.
        self.volume("simulated-1")
        self.volume("simulated-2")
        self.settings["capacity_iops"] = 500
        self.start()
        self.start_agent(3)
        self.set("simulated-1", "io.reserve-iops=300")
        self.wait_for("simulated-1", "set")
        self.set("simulated-2", "io.reserve-iops=300")
        self.set("simulated-3", "io.reserve-iops=10")
        self.assertIn("500", self.wait_for("simulated-2", "refused"))
        self.assertIn("simulated-3", self.wait_for("simulated-3", "refused"))
        for vm in ("simulated-2", "simulated-3"):
            self.assertIn("(refused)", self.ebbctl("explain", vm).stdout)
            self.assertIn("refused", self.ebbctl("vms", vm).stdout)
            self.assertIn(f"volume {vm}: ", self.ebbctl("vms").stdout)
        warnings = [line for line in self.agent_log().splitlines() if " event=error" in line or
                    line.startswith("event=error")]
        for vm in ("simulated-2", "simulated-3"):
            self.assertTrue(any(f"vm={vm} " in line and "refuses" in line for line in warnings),
                            self.agent_log())
        # The one that has its promise keeps it; less of it makes room for the other.
        self.assertEqual(self.vm("simulated-1")["volumes"][0]["state"], "set")
        self.assertEqual(self.kept("simulated-1")["reserve_iops"], 300)
        self.assertEqual(self.kept("simulated-2")["reserve_iops"], None)
        self.set("simulated-1", "io.reserve-iops=200")
        self.wait_for("simulated-2", "set")
        self.assertEqual(self.kept("simulated-2")["reserve_iops"], 300)
        self.wait_until(lambda: "500 of 500 requests/s promised, 0 left" in
                        self.ebbctl("host").stdout, "it is told how much is promised", self.agent)

    def ledger(self, volume):
        done = self.ebbctl("--json", "ledger")
        self.assertEqual(done.returncode, 0, done.stderr)
        return {row["resource"]: row for row in json.loads(done.stdout)["ledger"]}.get(
            "io/" + volume, {"num_intervals": 0})

    def test_metered(self):
        self.volume("simulated-1")
        self.volume("flood", weight=10000)
        self.settings["depth"] = 8
        self.start(iops=500)
        loads = nbd.loads(self.nbd, "simulated-1", 64, 4) + nbd.loads(self.nbd, "flood", 64, 4)
        self.start_agent(1)
        self.set("simulated-1", "io.reserve-iops=300")
        self.wait_for("simulated-1", "set")
        self.wait_until(lambda: self.ledger("simulated-1")["num_intervals"] >= 3, "it is metered",
                        self.agent)
        before, counters = self.ledger("simulated-1"), self.meters()["simulated-1"]["counters"]
        # More than the disk can do: what is missing is told, and why.
        self.set("simulated-1", "io.reserve-iops=5000")
        self.wait_until(lambda: self.ledger("simulated-1")["num_violations"] >=
                        before["num_violations"] + 2, "it is violated", self.agent)
        for load in loads:
            load.stop()
        for load in loads:
            load.join()
        # What the server itself counts, from the first reading on.
        after = self.meters()["simulated-1"]["counters"]
        late = {key: after[key] - counters[key] for key in ("charged", "early", "violated")}
        self.wait_until(lambda: self.ledger("simulated-1")["got"] - before["got"] >=
                        late["charged"] + late["early"], "all of it is in the ledger", self.agent)
        row = self.ledger("simulated-1")
        self.assertGreaterEqual(row["violated"] - before["violated"], late["violated"])
        self.assertEqual(row["unit"], "units")
        self.assertEqual(row["rate"], 5000)
        self.assertIn(row["cause"], ("others", "overbooked", "host"))
        self.assertIn(" units beyond others' promises ", row["reason"])
        self.assertAlmostEqual(before["metered_s"], before["num_intervals"], delta=0.1)
        shown = self.ebbctl("vms", "simulated-1").stdout
        self.assertRegex(shown, r"[0-9]+ units got of [0-9]+ due, [1-9][0-9]* missing in ")
        self.assertIn("99% within", shown)
        metrics = self.ebbctl("metrics").stdout
        self.assertIn('ebb_io_got_units_total{vm="simulated-1",volume="simulated-1"} ', metrics)
        self.assertIn('ebb_promise_violations_total{vm="simulated-1",resource="io/simulated-1"} ',
                      metrics)
