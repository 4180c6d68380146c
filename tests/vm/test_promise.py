# SPDX-License-Identifier: GPL-2.0-or-later
"""Promises of memory (reserve-mem) of whole VMs: a database whose neighbour takes all memory, and a
neighbour whose reports are nonsense.

Counts of reads are compared, never times, so it does not matter how fast the machine is."""
import json
import os
import re
import signal
import unittest

from .rig import lab, wait_for
from .test_mem import MIB, NODE, PATIENT_DEADLINE_MS, POOL_MIB, MemTest, on_each_kernel

MIN_MIB = 8             # of the database, whatever is promised
PROMISE_MIB, LESS_MIB = 16, 12
# Two thirds of the records fit the promised cache, a third the minimum.
ENGINE = ("oltp-server --workload uniform --data-mib 24 --operations 4 --update 0 --pool "
          "--cold-dir /cold --seconds 36000 --interval-ms 500 --elastic none")
LIAR_MIB = 64
READS = 2000            # of the promised cache, by which a promise is judged
# What may be chance in one interval (docs/control-protocol.md, "ledger").
CHANCE_PART, CHANCE_READS = 0.02, 16


@on_each_kernel
class Promise(MemTest):
    def on_life(self, series, other):
        # Without a promise the policy leaves the database next to nothing beyond its minimum.
        db = self.guest(f"db-{series}", series=series, mem_weight=1, disks_mib=[512],
                        mem_deadline_ms=PATIENT_DEADLINE_MS, min_mib=MIN_MIB,
                        options={"cold": "vda"}).start()
        db.wait_mib("limit", POOL_MIB)
        out = db.begin(ENGINE)
        wait_for("it runs", lambda: self.said(db, out, "cold_reads") is not None)
        taker = self.guest(f"taker-{other}", series=other, mem_weight=10000,
                           mem_deadline_ms=PATIENT_DEADLINE_MS, options={"monitor": "0"}).start()
        taker.wait_mib("limit", POOL_MIB - MIN_MIB)
        taker.hold_mem(POOL_MIB - MIN_MIB)
        wait_for("it reads from disk", lambda: self.said(db, out, "cold_reads") > 0)
        self.assertEqual(self.said(db, out, "baseline_ios") or 0, 0)
        for part in (self.what_is_too_much_is_refused, self.set_while_it_runs,
                     self.kept_beside_the_taker, self.another_size,
                     self.nonsense_harms_the_liar_only, self.ended):
            with self.subTest(part.__name__):
                part(db, taker, out)
        db.end(out, signal.SIGTERM)
        result = wait_for("the result", lambda: [
            json.loads(line.partition(" ")[2]) for line in db.call(f"cat {out}")[1].splitlines()
            if line.startswith("oltp-result ")])[0]
        self.assertEqual((result["failed_transactions"], result["lost_updates"],
                          result["memory"]["lost_records"]), (0, 0, 0))
        self.assertFalse(db.history("mem_revoke") + taker.history("mem_revoke"))

    def guest(self, name, min_mib=0, **more):
        g = super().guest(name, **more)
        g.vm.cells[NODE].pool_min_mib = min_mib
        return g

    # ---- what is seen ----

    def said(self, db, out, name):
        """A number of the engine's last line; None if it has not said one yet."""
        found = re.findall(rf" {name}=(\d+)", db.call(f"tail -n 4 {out}")[1])
        return int(found[-1]) if found else None

    def row(self, g):
        """Of the ledger, about memory; None if there is none yet."""
        rows = lab().ask("ledger")["ledger"]
        return next((r for r in rows if (r["vm"], r["resource"]) == (g.domain, "memory")), None)

    def wait_metered(self, g, mib):
        """The guest simulates a cache of this size: two more intervals, so that one of them began
        after that."""
        def intervals():
            row = self.row(g)
            return row["num_intervals"] if row and row["rate"] == mib else None
        before = wait_for(f"{g.vm.name}: a cache of {mib} MiB is metered", intervals)
        wait_for(f"{g.vm.name}: more intervals", lambda: (intervals() or 0) >= before + 2)
        return self.row(g)

    def wait_kept(self, g):
        """In a time with so many reads of the promised cache the database made no more. The memory
        may still be on its way at first."""
        begin = self.row(g)

        def is_kept():
            nonlocal begin
            row = self.row(g)
            due, made = (row[k] - begin[k] for k in ("promised", "got"))
            if due < READS:
                return None
            intervals = row["num_intervals"] - begin["num_intervals"]
            if made <= due * (1 + CHANCE_PART) + CHANCE_READS * intervals:
                return row
            begin = row
            return None
        return wait_for(f"{g.vm.name} reads no more than promised", is_kept)

    def promised_on_host(self):
        """MiB on the node of the host, and how many may be promised besides."""
        p = lab().ask("host")["host"]["nodes"][NODE]["mem_promises"]
        self.assertEqual(p["overbooked_bytes"], 0)
        return p["promised_bytes"] / MIB, p["free_bytes"] / MIB

    def promise(self, g, mib):
        self.ctl("set", g.domain, f"reserve-mem={mib}")

    # ---- the parts ----

    def what_is_too_much_is_refused(self, db, taker, _out):
        # Beyond what its pool may have: not an SLA at all.
        status = os.spawnvp(os.P_WAIT, lab().ctl()[0], lab().ctl(
            "set", db.domain, f"reserve-mem={POOL_MIB - MIN_MIB + 1}"))
        self.assertEqual(status, 1)
        # Beyond what the node has left: no promise, and why.
        self.promise(taker, POOL_MIB)
        wait_for("it is refused", lambda: any("is not promised" in r["reason"]
                                              for r in taker.history("error")))
        self.assertEqual(taker.state()["promised_mem_mib"], 0)
        self.promise(taker, 0)
        self.assertEqual(self.promised_on_host(), (0, POOL_MIB - MIN_MIB))

    def set_while_it_runs(self, db, _taker, out):
        self.promise(db, PROMISE_MIB)
        wait_for("it is promised", lambda: db.state()["promised_mem_mib"] == PROMISE_MIB)
        self.assertEqual(self.promised_on_host(),
                         (PROMISE_MIB, POOL_MIB - MIN_MIB - PROMISE_MIB))
        row = self.wait_metered(db, PROMISE_MIB)
        self.assertEqual(row["unit"], "ios")
        wait_for("reads of the simulated cache", lambda: self.row(db)["promised"] > 0)
        # The agent's sums are what the engine counted, as of an earlier moment.
        row = self.row(db)
        wait_for("the engine says so, too",
                 lambda: self.said(db, out, "baseline_ios") >= row["promised"] and
                 self.said(db, out, "actual_ios") >= row["got"])

    def kept_beside_the_taker(self, db, taker, _out):
        wait_for("the taker gives memory back",
                 lambda: db.mib("limit") >= MIN_MIB + db.state()["kept_mem_mib"])
        row = self.wait_kept(db)
        self.assertGreater(db.state()["kept_mem_mib"], 0)
        self.assertLessEqual(taker.mib("held") + db.mib("held"), POOL_MIB)
        self.assertEqual(row["num_unclear"], 0)

    def another_size(self, db, _taker, _out):
        self.promise(db, LESS_MIB)
        self.wait_metered(db, LESS_MIB)
        self.assertEqual(db.state()["promised_mem_mib"], LESS_MIB)
        self.assertLessEqual(db.state()["kept_mem_mib"], LESS_MIB)
        self.wait_kept(db)

    def nonsense_harms_the_liar_only(self, db, taker, _out):
        self.promise(taker, LIAR_MIB)
        wait_for("it is promised", lambda: taker.state()["promised_mem_mib"] == LIAR_MIB)
        # However badly it says that it is served.
        out = taker.begin(f"/ebb/tests/ebbt-baseline {LIAR_MIB} 10 100000 2>&1")
        wait_for("that counts as broken", lambda: (self.row(taker) or {}).get("num_violations"))
        self.assertLessEqual(taker.state()["kept_mem_mib"], LIAR_MIB)
        self.assertEqual(db.state()["promised_mem_mib"], LESS_MIB)
        self.wait_kept(db)
        taker.end(out)
        out = taker.begin(f"/ebb/tests/ebbt-baseline {LIAR_MIB} back 2>&1")
        wait_for("that is not believed", lambda: self.row(taker)["num_unclear"])
        self.assertTrue([r for r in taker.history("error") if "not believed" in r["reason"]])
        self.assertFalse([r for r in db.history("error") if "believed" in r["reason"]])
        self.assertLessEqual(taker.state()["kept_mem_mib"], LIAR_MIB)
        self.wait_kept(db)
        self.assertEqual(self.row(db)["num_unclear"], 0)
        taker.end(out)

    def ended(self, db, taker, _out):
        for g in (db, taker):
            self.promise(g, 0)
        wait_for("nothing is promised", lambda: db.state()["promised_mem_mib"] == 0)
        self.assertEqual(db.state()["kept_mem_mib"], 0)
        self.assertEqual(self.promised_on_host(), (0, POOL_MIB - MIN_MIB))
        taker.wait_mib("limit", POOL_MIB - MIN_MIB)
        self.assertTrue(self.row(db))


if __name__ == "__main__":
    unittest.main()
