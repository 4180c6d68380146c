# SPDX-License-Identifier: GPL-2.0-or-later
"""A guest that misuses what it may do, and a neighbour that must not notice.

Both are there all the time, and their weights say who may hold how many of the eight cores. Times
are printed; what is asked of them leaves room for a machine that is busy with other things.
"""
import json
import os
import time
import unittest

from .rig import VmTest, lab, run, wait_for

DEADLINE_MS = 4000
SLACK_S = 3             # of a busy machine
EVIL_SHARE = 6          # cores, at weight 300 to 100
FAIR_SHARE = 4          # at equal weights
MIN_RATE = 0.5          # of what the neighbour computes undisturbed: others use this machine, too
MAX_LOG_LINES = 3000    # of the agent, for one misdeed
LINES_PER_REQUEST = 3   # of them, beyond that; how many requests there can be, the device limits
MAX_REQUESTS_PER_S = 1000
BURN_S = 4
FLOOD_S = 10


def log_lines():
    with open(os.path.join(lab().log_dir, "ebbd.log"), encoding="utf-8", errors="replace") as f:
        return sum(1 for _ in f)


class EvilGuest(VmTest):
    def test_neighbour_is_unharmed(self):
        self.evil = self.guest("evil", deadline_ms=DEADLINE_MS, options={"monitor": 0}).start()
        self.good = self.guest("good", deadline_ms=DEADLINE_MS, options={"monitor": 0}).start()
        self.let_evil_have_more()
        self.held, answer = self.good.hold("hold 1")
        self.good_cpus = f"0 {answer['cpus'][0]['cpu']}"
        self.rate = self.burn()
        for part in (self.never_answers, self.gives_one_by_one, self.computes_on_what_it_lent,
                     self.brings_online_what_it_parked, self.alternates, self.floods):
            with self.subTest(part.__name__):
                self.let_evil_have_more()
                lines = log_lines()
                requests = part() or 0
                self.assertLess(log_lines() - lines, MAX_LOG_LINES + LINES_PER_REQUEST * requests)
                self.assertEqual(self.good.held(), 2)
                self.assertFalse(any(c["forced"] for c in self.good.cpus()))

    # ---- means ----

    def explain(self):
        return run(lab().ctl("explain", self.evil.domain))

    def let_evil_have_more(self):
        self.evil.call("killall -9 ebbt-evil ebbt-cpu")
        self.evil.wait_lent()
        lab().ask("set", self.evil.domain, "weight=300")
        self.evil.wait_offer(EVIL_SHARE)

    def take_back(self):
        """Ask for the difference; seconds until the neighbour may have it."""
        start = time.monotonic()
        lab().ask("set", self.evil.domain, "weight=100")
        self.good.wait_offer(FAIR_SHARE, 3 * DEADLINE_MS / 1000)
        return time.monotonic() - start

    def burn(self):
        """What the neighbour computes in a second, on both its CPUs."""
        out = self.good.must(f"/ebb/tests/ebbt-evil burn {BURN_S} {self.good_cpus}")
        return json.loads(out)["per_s"]

    def check_rate(self):
        rate = self.burn()
        print(f"the neighbour computes at {rate / self.rate:.2f} of its rate", flush=True)
        self.assertGreater(rate, MIN_RATE * self.rate)

    def evil_output(self, out, seconds=60):
        """The last line of a program that has ended."""
        wait_for("the program ends", lambda: self.evil.call(f"kill -0 $(cat {out}.pid)")[0],
                 seconds)
        return json.loads(self.evil.must(f"cat {out}").splitlines()[-1])

    # ---- misdeeds ----

    def never_answers(self):
        out, _ = self.evil.hold(f"hold {EVIL_SHARE - 1}")
        forced = len(self.evil.history("force"))
        secs = self.take_back()
        print(f"never answers: the neighbour waits {secs:.1f} s")
        self.assertLess(secs, DEADLINE_MS / 1000 + SLACK_S)
        self.assertGreater(len(self.evil.history("force")), forced)
        self.assertIn("let a deadline pass", self.explain())
        # It lives on, on less.
        self.assertEqual(sum(c["forced"] for c in self.evil.cpus()), EVIL_SHARE - FAIR_SHARE)
        self.check_rate()
        self.evil.end(out)

    def gives_one_by_one(self):
        out = self.evil.begin(f"/ebb/tests/ebbt-evil miser 15 {EVIL_SHARE - 1}")
        self.evil.wait_held(EVIL_SHARE)
        secs = self.take_back()
        print(f"gives one just before each deadline: the neighbour waits {secs:.1f} s")
        # One deadline for all of them, not one for each.
        self.assertLess(secs, DEADLINE_MS / 1000 + SLACK_S)
        self.assertLessEqual(self.evil.held(), FAIR_SHARE)
        given = self.evil_output(out)["given"]
        self.assertGreaterEqual(given, 1)
        self.assertTrue(self.evil.history("force"))

    def computes_on_what_it_lent(self):
        lends = len(self.evil.history("lend"))
        out = self.evil.begin(f"/ebb/tests/ebbt-evil squat 12 {EVIL_SHARE - 1}")
        wait_for("all are lent",
                 lambda: len(self.evil.history("lend")) >= lends + EVIL_SHARE - 1)
        wait_for("the agent counts them as given back", lambda: self.evil.held() == 1)
        self.check_rate()
        states = [v["state"] for v in self.evil.state()["vcpus"]]
        self.assertGreaterEqual(states.count("lent"), EVIL_SHARE - 1)
        self.assertGreater(self.evil_output(out)["work"], 0)

    def brings_online_what_it_parked(self):
        answer = self.evil.test("keep 2 park")[0]
        parked = [c["cpu"] for c in answer["cpus"]]
        tries = 20 * len(parked)
        failed = self.evil.must(
            f"n=0; for i in $(seq 20); do for c in {' '.join(map(str, parked))}; do "
            "echo 1 2>/dev/null >/sys/devices/system/cpu/cpu$c/online || n=$((n + 1)); "
            "done; done 2>/dev/null; echo $n")
        self.assertEqual(int(failed.split()[-1]), tries)
        self.assertTrue(all(c["parked"] for c in self.evil.cpus() if c["cpu"] in parked))
        self.check_rate()

    def alternates(self):
        out = self.evil.begin(f"/ebb/tests/ebbt-evil flip 10 {EVIL_SHARE - 1}")
        time.sleep(1)
        self.check_rate()
        flips = self.evil_output(out)["flips"]
        print(f"{flips} times all of them")
        self.assertGreater(flips, 3)

    def floods(self):
        out = self.evil.begin(f"/ebb/tests/ebbt-evil flood {FLOOD_S} 16")
        time.sleep(1)
        self.check_rate()
        start = time.monotonic()
        self.good.end(self.held)
        self.good.wait_held(1)
        self.held, answer = self.good.hold("hold 1")
        print(f"the neighbour has another CPU after {time.monotonic() - start:.1f} s")
        self.assertEqual(answer["granted"], 1)
        flood = self.evil_output(out)
        print(f"{flood['requests']} requests, {flood['refused']} refused")
        self.assertGreater(flood["requests"], 100)
        self.assertLess(flood["requests"], 1.2 * MAX_REQUESTS_PER_S * FLOOD_S)
        return flood["requests"]


if __name__ == "__main__":
    unittest.main()
