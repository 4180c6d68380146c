# SPDX-License-Identifier: GPL-2.0-or-later
"""A guest that misuses what it may do, and a neighbour that must not notice.

Both are there all the time, and their weights say who may hold how many of the eight cores. Times
are printed; what is asked of them leaves room for a machine that is busy with other things.
"""
import json
import os
import re
import time
import unittest

from .rig import VmTest, lab, run, wait_for

DEADLINE_MS = 16000
SLACK_S = 12            # of a busy machine: two deadlines are longer, one after the other
EVIL_SHARE = 6          # cores, at weight 300 to 100
FAIR_SHARE = 4          # at equal weights
MIN_RATE = 0.5          # of what the neighbour computes undisturbed: others use this machine, too
MAX_LOG_LINES = 3000    # of the agent, for one misdeed
RECORDS_PER_S = 21      # of requests and refusals that the log has of one VM
MAX_REQUESTS_PER_S = 1000
BURN_S = 3
BURN_TRIES = 3          # others that use this machine do so now and then, a misdeed all the time
SQUAT_S = 60            # CPU times are measured every 5 s, and three times before it counts
WAKE_S = 15
FLIP_S = 30
FLOOD_S = 10
VERDICT_S = 180         # until it is told, on a busy machine


def log_lines():
    with open(os.path.join(lab().log_dir, "ebbd.log"), encoding="utf-8", errors="replace") as f:
        return f.read().splitlines()


class EvilGuest(VmTest):
    def test_neighbour_is_unharmed(self):
        self.evil = self.guest("evil", deadline_ms=DEADLINE_MS, options={"monitor": 0})
        # It may write to its APICs, as every kernel may.
        self.evil.define(lambda xml: xml.replace("</cmdline>", " iomem=relaxed</cmdline>")).start()
        self.good = self.guest("good", deadline_ms=DEADLINE_MS, options={"monitor": 0}).start()
        self.let_evil_have_more()
        self.held, answer = self.good.hold("hold 1")
        self.good_cpus = f"0 {answer['cpus'][0]['cpu']}"
        self.rate = self.burn()
        for part in (self.never_answers, self.gives_one_by_one, self.computes_on_what_it_lent,
                     self.brings_online_what_it_parked, self.alternates, self.floods):
            with self.subTest(part.__name__):
                self.let_evil_have_more()
                self.log_start = len(log_lines())
                moved = part() or 0
                self.assertLess(len(self.log()), MAX_LOG_LINES + moved)
                self.assertEqual(self.good.held(), 2)
                self.assertFalse(any(c["forced"] for c in self.good.cpus()))

    # ---- means ----

    def explain(self):
        return run(lab().ctl("explain", self.evil.domain))

    def log(self):
        """What the agent has written since this part began."""
        return log_lines()[self.log_start:]

    def log_of(self, event):
        return self.about_evil(event, self.log())

    def about_evil(self, event, lines):
        return [line for line in lines
                if f"event={event} " in line and f"vm={self.evil.domain} " in line]

    def expect_verdict(self, name, pattern):
        """Told by ebbctl explain, as text and as JSON, and by the log."""
        def find(lines):
            return next((line for line in lines if re.search(pattern, line)), None)

        said = wait_for(f"ebbctl explain: {pattern}", lambda: find(
            line for line in self.explain().splitlines() if "the guest " in line), VERDICT_S, 0.5)
        print(f"explain: {said.strip()}", flush=True)
        texts = [v["text"] for v in self.lab_explain()["verdicts"] if v["verdict"] == name]
        self.assertTrue(find(texts), texts)
        # An earlier part may have begun it.
        line = wait_for(f"the log: {pattern}", lambda: find(
            line for line in self.about_evil("conduct", log_lines())
            if f'"{name}: the guest ' in line), VERDICT_S, 0.5)
        print(f"log: {line}", flush=True)

    def expect_pardon(self, name):
        """It is not told any more, and the log says so."""
        wait_for(f"{name} is over", lambda: name not in
                 [v["verdict"] for v in self.lab_explain()["verdicts"]], VERDICT_S, 0.5)
        wait_for("the log", lambda: any(f"{name}: the guest behaves again" in line
                                        for line in self.log_of("conduct")), VERDICT_S, 0.5)

    def lab_explain(self):
        return lab().ask("explain", self.evil.domain)["explain"]

    def let_evil_have_more(self):
        self.evil.call("killall -9 ebbt-evil ebbt-cpu")
        self.evil.wait_lent()
        lab().ask("set", self.evil.domain, "weight=300")
        self.evil.wait_offer(EVIL_SHARE)

    def take_back(self, weight=100, cores=FAIR_SHARE):
        """Leave it so many cores; seconds until the neighbour may have the others."""
        start = time.monotonic()
        lab().ask("set", self.evil.domain, f"weight={weight}")
        self.good.wait_offer(2 * FAIR_SHARE - cores, 10 * DEADLINE_MS / 1000)
        return time.monotonic() - start

    def burn(self):
        """What the neighbour computes in a second, on both its CPUs."""
        out = self.good.must(f"/ebb/tests/ebbt-evil burn {BURN_S} {self.good_cpus}")
        return json.loads(out)["per_s"]

    def check_rate(self):
        for _ in range(BURN_TRIES):
            rate = self.burn()
            if rate > MIN_RATE * self.rate:
                break
        print(f"the neighbour computes at {rate / self.rate:.2f} of its rate", flush=True)
        self.assertGreater(rate, MIN_RATE * self.rate)

    def evil_output(self, out):
        """The last line of a program that has ended."""
        wait_for("the program ends", lambda: self.evil.call(f"kill -0 $(cat {out}.pid)")[0])
        return json.loads(self.evil.must(f"cat {out}").splitlines()[-1])

    # ---- misdeeds ----

    def never_answers(self):
        out, _ = self.evil.hold(f"hold {EVIL_SHARE - 1}")
        forced = len(self.evil.history("force"))
        secs = self.take_back()
        print(f"never answers: the neighbour waits {secs:.1f} s")
        self.assertLess(secs, DEADLINE_MS / 1000 + SLACK_S)
        # The neighbour's offer may come a moment before the deadline.
        wait_for("force", lambda: len(self.evil.history("force")) > forced)
        self.assertIn("let a deadline pass", self.explain())
        self.expect_verdict("silent", "did not answer [0-9]+ demands")
        # It lives on, on less.
        self.assertEqual(sum(c["forced"] for c in self.evil.cpus()), EVIL_SHARE - FAIR_SHARE)
        self.check_rate()
        self.evil.end(out)

    def gives_one_by_one(self):
        out = self.evil.begin(f"/ebb/tests/ebbt-evil miser 300 {EVIL_SHARE - 1}")
        self.evil.wait_held(EVIL_SHARE)
        # One CPU each time; then two at once, of which it gives one.
        for weight, cores in ((170, 5), (100, 4), (35, 2)):
            secs = self.take_back(weight, cores)
            print(f"gives one just before each deadline: the neighbour waits {secs:.1f} s")
            # One deadline for all of them, not one for each.
            self.assertLess(secs, DEADLINE_MS / 1000 + SLACK_S)
            self.evil.wait_held(cores)
        self.assertTrue(self.evil.history("force"))
        self.expect_verdict("late", "gave [0-9]+ of [0-9]+ CPUs just before the deadline")
        self.expect_verdict("partial", "gave [0-9]+ of [0-9]+ CPUs only")
        self.evil.end(out)
        self.assertGreaterEqual(self.evil_output(out)["given"], 2)

    def computes_on_what_it_lent(self):
        lends = len(self.evil.history("lend"))
        out = self.evil.begin(f"/ebb/tests/ebbt-evil squat {SQUAT_S} {EVIL_SHARE - 1}")
        wait_for("all are lent",
                 lambda: len(self.evil.history("lend")) >= lends + EVIL_SHARE - 1)
        wait_for("the agent counts them as given back", lambda: self.evil.held() == 1)
        self.check_rate()
        states = [v["state"] for v in self.evil.state()["vcpus"]]
        self.assertGreaterEqual(states.count("lent"), EVIL_SHARE - 1)
        self.expect_verdict("squat", "computes on lent CPUs: [0-9]+% of a CPU over the last ")
        self.assertGreater(self.evil_output(out)["work"], 0)
        self.expect_pardon("squat")

    def brings_online_what_it_parked(self):
        apic_ids = self.apic_ids()
        answer = self.evil.test("keep 2 park")[0]
        parked = [c["cpu"] for c in answer["cpus"]]
        # Its own driver refuses what goes through Linux.
        tries = 20 * len(parked)
        failed = self.evil.must(
            f"n=0; for i in $(seq 20); do for c in {' '.join(map(str, parked))}; do "
            "echo 1 2>/dev/null >/sys/devices/system/cpu/cpu$c/online || n=$((n + 1)); "
            "done; done 2>/dev/null; echo $n")
        self.assertEqual(int(failed.split()[-1]), tries)
        out = self.evil.begin(f"/ebb/tests/ebbt-evil wake {WAKE_S} "
                              f"{' '.join(apic_ids[cpu] for cpu in parked)}")
        self.check_rate()
        self.assertTrue(all(c["parked"] for c in self.evil.cpus() if c["cpu"] in parked))
        states = [v["state"] for v in self.evil.state()["vcpus"]]
        self.assertEqual(states.count("parked"), len(parked))
        self.expect_verdict("wake", "tries to start parked CPUs: they were woken up to [0-9]+ ")
        self.assertGreater(self.evil_output(out)["sent"], 0)

    def apic_ids(self):
        """APIC id of each CPU that is online, as text."""
        text = self.evil.must("grep -E '^(processor|apicid)' /proc/cpuinfo")
        words = [line.split(":")[1].strip() for line in text.splitlines() if ":" in line]
        return {int(cpu): apic_id for cpu, apic_id in zip(words[::2], words[1::2])}

    def alternates(self):
        out = self.evil.begin(f"/ebb/tests/ebbt-evil flip {FLIP_S} {EVIL_SHARE - 1}")
        time.sleep(1)
        self.check_rate()
        self.expect_verdict("flap", "takes CPUs and gives them back at once: up to [0-9]+ ")
        flips = self.evil_output(out)["flips"]
        print(f"{flips} times all of them")
        self.assertGreater(flips, 3)
        return sum(len(self.log_of(e)) for e in ("grant", "lend"))

    def floods(self):
        begin = time.monotonic()
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
        self.expect_verdict("flood", "floods: up to [0-9]+ requests within a second")
        seconds = time.monotonic() - begin
        unmoved = len(self.log_of("request") + self.log_of("refuse"))
        print(f"{flood['requests']} requests, {flood['refused']} refused; in the log "
              f"{unmoved} lines of them, {len(self.log())} in all", flush=True)
        self.assertLess(unmoved, RECORDS_PER_S * (seconds + 2))
        self.assertGreater(flood["requests"], 100)
        self.assertLess(flood["requests"], 1.2 * MAX_REQUESTS_PER_S * seconds)
        return sum(len(self.log_of(e)) for e in ("grant", "lend"))


if __name__ == "__main__":
    unittest.main()
