# SPDX-License-Identifier: GPL-2.0-or-later
"""The verdict of `spot` on made-up runs: good ones pass, bad ones fail where they should."""
import unittest

import made_up
from judged import failing, judge
from scenarios.spot import verdict as verdict_spot


class Spot(unittest.TestCase):
    def test_fair_host_passes(self):
        summary = judge(*made_up.spot())
        self.assertEqual(failing(summary), set())
        self.assertEqual(summary["verdict"], "pass")
        self.assertEqual(summary["share_convergence_ms"]["n"], 3)
        self.assertEqual(summary["share_convergence_ms"]["median"], 1000)

    def test_convergence_is_measured_not_assumed(self):
        summary = judge(*made_up.spot(delay_s=3.5))
        self.assertEqual(summary["verdict"], "pass")
        self.assertEqual(summary["share_convergence_ms"]["median"], 3500)

    def test_lending_is_judged_from_the_first_request(self):
        summary = judge(*made_up.spot(tier="lend", ready_s=0.15))
        self.assertEqual(failing(summary), set())
        self.assertAlmostEqual(summary["share_convergence_ms"]["median"], 150)
        self.assertEqual(summary["cpu_remove_ms"]["n"], sum(
            e.cpus for e in made_up.spot(tier="lend")[1].events if e.event == "lend"))
        self.assertEqual(summary["phases"][0]["ready_convergence_ms"], 150)
        summary = judge(*made_up.spot(tier="lend", ready_s=0.3))
        self.assertEqual(failing(summary), {"shares_equal_when_ready_ms"})
        run, host = made_up.spot(tier="lend", ready_s=0.3)
        run["time_scale"] = 2.0
        self.assertEqual(failing(judge(run, host)), set())

    def test_loading_before_the_first_request_is_not_the_exchange(self):
        self.assertEqual(failing(judge(*made_up.spot(tier="lend", delay_s=7.0))),
                         {"shares_equal_after_leave_vm3", "shares_equal_after_leave_vm2"})

    def test_vms_that_come_again_are_judged_each_time(self):
        again = ("vm3", "vm2", "vm1", "vm3")
        run, host = made_up.spot(tier="lend", again=again)
        summary = judge(run, host)
        self.assertEqual(failing(summary), set())
        self.assertEqual(summary["share_convergence_ms"]["n"], 7)
        self.assertEqual(summary["committed_transactions"], 3 * 1000 + 4 * 500)
        names = {c["name"] for c in summary["checks"]}
        self.assertLessEqual({"shares_equal_after_join_vm3", "shares_equal_after_join_vm3_2",
                              "shares_equal_after_join_vm3_3", "shares_equal_after_join_vm1_2",
                              "shares_equal_after_leave_vm2_2"}, names)
        for name, bad in (("failed", "failed_transactions"), ("lost_updates", "lost_updates")):
            run, host = made_up.spot(tier="lend", again=again)
            run["earlier_results"]["vm3"][1][name] = 1
            self.assertEqual(failing(judge(run, host)), {bad})
        run["earlier_results"]["vm3"][1] = None
        self.assertEqual(failing(judge(run, host)), {"failed_transactions", "lost_updates"})

    def test_a_join_that_did_not_come_again_is_missed(self):
        run, host = made_up.spot(tier="lend", again=("vm3",))
        run["joins"] = 5
        self.assertEqual(failing(judge(run, host)), {"joins"})

    def test_a_stall_in_a_second_life_is_seen(self):
        run, host = made_up.spot(tier="lend", again=("vm2",))
        begin = [s["t_s"] for s in run["steps"] if s["vm"] == "vm2"][2]
        for s in host.samples:
            if s.vm == "vm2" and begin + 3 <= s.t_s < begin + 8:
                s.committed = 0
        self.assertIn("longest_stall_s", failing(judge(run, host)))

    def test_one_late_join_of_three_is_not_the_median_two_are(self):
        for late, bad in ((1, set()), (2, {"shares_equal_when_ready_ms"})):
            run, host = made_up.spot(tier="lend")
            for e in [e for e in host.events if e.event == "request"][:late]:
                e.t_s -= 0.4
            self.assertEqual(failing(judge(run, host)), bad)

    def test_lending_without_requests_is_not_measured(self):
        run, host = made_up.spot(tier="lend")
        host.events = [e for e in host.events if e.event != "request"]
        summary = judge(run, host)
        self.assertEqual(failing(summary), {"shares_equal_when_ready_ms"} | {
            f"shares_equal_after_join_vm{i}" for i in (1, 2, 3)})
        self.assertEqual(summary["share_convergence_ms"]["n"], 0)

    def test_lending_to_shares_that_stay_unequal_fails(self):
        greedy = {1: (8,), 2: (7, 1), 3: (6, 1, 1)}
        bad = failing(judge(*made_up.spot(
            tier="lend", share=lambda vms, vm: greedy[len(vms)][vms.index(vm)])))
        self.assertIn("shares_equal_when_ready_ms", bad)
        self.assertIn("shares_equal_after_join_vm2", bad)

    def test_moment_of_equality_is_that_of_the_last_exchange(self):
        phase = verdict_spot.Phase(0, 3, "join", "b", ("a", "b"), ())
        rows = [made_up.Sample(t, n, h, h, 0, 0, None, None, None, None)
                for t, a, b in ((0, 3, 1), (1, 3, 1), (2, 2, 2)) for n, h in (("a", a), ("b", b))]
        events = [made_up.Event(t, "a", "lend", 1) for t in (0.5, 1.2, 1.4, 2.5)]
        self.assertEqual(verdict_spot.equal_since(rows, events, phase, 4), 1.4)
        self.assertEqual(verdict_spot.equal_since(rows, [], phase, 4), 2)

    def test_slow_convergence_fails(self):
        bad = failing(judge(*made_up.spot(delay_s=5.5)))
        self.assertIn("shares_equal_after_join_vm2", bad)
        self.assertIn("shares_equal_after_leave_vm3", bad)

    def test_time_scale_stretches_the_bound(self):
        run, host = made_up.spot(delay_s=5.5)
        run["time_scale"] = 2.0
        self.assertEqual(judge(run, host)["verdict"], "pass")

    def test_starved_vm_fails(self):
        greedy = {1: (8,), 2: (7, 1), 3: (6, 1, 1)}
        run, host = made_up.spot(share=lambda vms, vm: greedy[len(vms)][vms.index(vm)])
        bad = failing(judge(run, host))
        self.assertIn("shares_equal_after_join_vm2", bad)
        self.assertIn("shares_equal_after_join_vm3", bad)
        self.assertNotIn("shares_equal_after_join_vm1", bad)

    def test_equal_but_idle_is_not_fair(self):
        # What static allocation looks like: the same for everybody, and most of the host unused.
        summary = judge(*made_up.spot(share=lambda vms, vm: 1))
        bad = failing(summary)
        for cause in ("join_vm1", "join_vm2", "join_vm3", "leave_vm3", "leave_vm2"):
            self.assertIn("shares_equal_after_" + cause, bad)
        self.assertEqual(summary["share_convergence_ms"]["n"], 0)
        self.assertGreater(summary["idle_core_pct"], 70)

    def test_static_partition_fails(self):
        bad = failing(judge(*made_up.spot(share=lambda vms, vm: 3 if vm != "vm3" else 2)))
        self.assertIn("shares_equal_after_join_vm1", bad)
        self.assertIn("shares_equal_after_leave_vm2", bad)

    def test_shares_that_do_not_last_fail(self):
        run, host = made_up.spot()
        begin = next(s["t_s"] for s in run["steps"] if s["vm"] == "vm2") - 0.5
        for s in host.samples:
            if s.vm == "vm1" and begin <= s.t_s < begin + 0.5:
                s.cpus_held = 6
        self.assertIn("shares_equal_after_join_vm1", failing(judge(run, host)))

    def test_shares_within_one_core_are_equal(self):
        phase = verdict_spot.Phase(0, 1, "join", "c", ("a", "b", "c"), ())
        for held, equal in (((3, 3, 2), True), ((2, 3, 3), True), ((4, 2, 2), False),
                            ((3, 3, 1), False), ((2, 2, 2), True), ((1, 1, 1), False)):
            vms = {n: made_up.Sample(0, n, h, h, 0, 0, None, None, None, None)
                   for n, h in zip("abc", held)}
            self.assertEqual(verdict_spot.shares_equal(vms, phase, 8), equal, held)

    def test_cores_of_a_booting_vm_are_not_to_be_shared(self):
        phase = verdict_spot.Phase(0, 1, "leave", "c", ("a",), ("b",))
        vms = {n: made_up.Sample(0, n, h, h, 0, 0, None, None, None, None)
               for n, h in (("a", 7), ("b", 1))}
        self.assertTrue(verdict_spot.shares_equal(vms, phase, 8))
        vms["a"].cpus_held = 6
        self.assertFalse(verdict_spot.shares_equal(vms, phase, 8))

    def test_a_vm_that_never_joins_fails(self):
        run, host = made_up.spot()
        for s in host.samples:
            if s.vm == "vm3":
                s.workers = 0
                s.driver = 0
        bad = failing(judge(run, host))
        self.assertIn("vms_joined", bad)
        self.assertIn("vms_at_once", bad)
        self.assertIn("longest_stall_s", bad)

    def test_a_vm_whose_engine_never_runs_fails(self):
        run, host = made_up.spot()
        for s in host.samples:
            if s.vm == "vm3":
                s.workers = 0
        bad = failing(judge(run, host))
        self.assertIn("vms_joined", bad)
        self.assertNotIn("vms_at_once", bad)
        self.assertIn("longest_stall_s", bad)

    def test_a_vm_that_gets_cpus_but_no_work_done_fails(self):
        run, host = made_up.spot()
        for s in host.samples:
            if s.vm == "vm2" and s.tps:
                s.tps /= 2
        self.assertIn("tps_per_cpu_spread_after_join_vm2", failing(judge(run, host)))

    def test_what_other_programs_took_of_a_vms_cpu_time_is_not_its_fault(self):
        run, host = made_up.spot()
        for s in host.samples:
            if s.vm == "vm2" and s.tps:
                s.tps /= 2
                s.cpu_ms /= 2
        self.assertNotIn("tps_per_cpu_spread_after_join_vm2", failing(judge(run, host)))

    def test_stalled_engine_fails(self):
        run, host = made_up.spot()
        frozen = None
        for s in host.samples:
            if s.vm == "vm1" and 20 <= s.t_s < 23:
                frozen = s.committed if frozen is None else frozen
                s.committed = frozen
        self.assertIn("longest_stall_s", failing(judge(run, host)))

    def test_missing_samples_fail(self):
        run, host = made_up.spot()
        host.samples = [s for s in host.samples if not 12 <= s.t_s < 15]
        self.assertIn("sampling_gap_s", failing(judge(run, host)))

    def test_no_samples_at_all_fail_without_breaking(self):
        run, host = made_up.spot()
        host.samples, host.events = [], []
        summary = judge(run, host)
        self.assertEqual(summary["verdict"], "fail")
        self.assertIn("sampling_gap_s", failing(summary))

    def test_engine_that_reports_no_more_fails(self):
        run, host = made_up.spot()
        for s in host.samples:
            if s.vm == "vm1" and 12 <= s.t_s < 16:
                s.report_age_ms = 3500
        self.assertIn("unreported_samples", failing(judge(run, host)))


if __name__ == "__main__":
    unittest.main()
