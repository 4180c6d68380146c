# SPDX-License-Identifier: GPL-2.0-or-later
"""The verdict of `migrate`: computed from what was recorded, and failing when it should."""
import contextlib
import io
import ipaddress
import os
import socket
import time
import unittest
from types import SimpleNamespace

import made_up  # noqa: F401
from harness.lab.oltp_server import Observer
from harness.measure import process_meter
from judged import value
from made_up_migrate import case, one, run, usual
from scenarios import catalogue, demo, outcome
from scenarios.migrate import plan, play
from scenarios.migrate.play import node_look


def summary_of(made):
    return outcome.summarize(made, [], [])


def of_tpcc(table):
    return next(c for c in plan.CASES if c.table == table and c.warehouses)


def failed(*cases):
    return [c["name"] for c in summary_of(run(*cases))["checks"] if not c["ok"]]


class Verdict(unittest.TestCase):
    def test_figures_are_those_of_the_paper(self):
        summary = summary_of(run(case(one(5), slow=1.4, slow_s=8)))
        self.assertEqual(summary["verdict"], "pass")
        move = summary["moves"][0]
        self.assertAlmostEqual(move["migration_s"], 20.2, 1)
        self.assertAlmostEqual(move["handover_s"], 21.0, 1)
        self.assertAlmostEqual(move["impact_s"], 7.2, 1)
        self.assertTrue(move["impact_has_ended"])
        self.assertAlmostEqual(move["steady_ms"], 2.0)
        self.assertAlmostEqual(move["ratio"], 1.4)
        self.assertAlmostEqual(move["received_ratio"], 1.2)
        self.assertAlmostEqual(move["cpu_cost"], 1.2, 1)

    def test_the_usual_moves_pass(self):
        summary = summary_of(run())
        self.assertEqual(summary["verdict"], "pass")
        self.assertEqual(len(summary["moves"]), len(usual()))
        self.assertEqual(value(summary, "abrupt_felt"), 1)

    def test_failed_requests_fail(self):
        self.assertEqual(failed(case(one(5), failed=1)), ["failed_requests"])

    def test_slow_requests_fail(self):
        self.assertEqual(failed(case(one(5), slow=1.6)), ["response_ratio"])
        self.assertEqual(failed(case(one(10), slow=1.6)), [])
        self.assertEqual(failed(case(one(10), slow=2.1)), ["response_ratio_beside_tenants"])

    def test_impact_without_an_end_counts_whole(self):
        made = run(case(one(5), slow=1.2, slow_s=100))
        move = summary_of(made)["moves"][0]
        self.assertFalse(move["impact_has_ended"])
        self.assertAlmostEqual(move["impact_s"], 32.0, 1)
        self.assertIn("at least 32.0 s", outcome.render(made, [], [], summary_of(made)))

    def test_calm_seconds_before_connections_moved_are_no_end(self):
        """The first fast seconds say nothing: hardly any request went to the target."""
        late = case(one(5), slow=1.0)
        for row in late["load"]:
            if 14.0 < row["t_s"] < 20.0:
                row["mean_us"] *= 3
        self.assertEqual(failed(late), ["response_ratio"])

    def test_slow_other_tenants_fail(self):
        self.assertEqual(failed(case(one(10), others=1.3)), ["others_response_pct"])

    def test_too_many_bytes_fail(self):
        self.assertEqual(failed(case(one(5), received=1.4)), ["received_ratio"])

    def test_cold_records_are_not_cached(self):
        half = case(one(8), received=0.8)
        for look in half["looks"]["source"]:
            look["cold_records"] = 1000
        self.assertEqual(failed(half), ["received_ratio"])

    def test_long_pauses_fail(self):
        self.assertEqual(failed(case(one(5), pause_ms=25.0)), ["pause_p99_ms"])

    def test_lost_updates_fail_in_any_mode(self):
        self.assertEqual(failed(case(one(4, plan.SLOW), lost=1)), ["lost_updates"])

    def test_the_workload_like_tpcc_is_held_to_the_same_bounds(self):
        for planned in plan.CASES:
            if planned.warehouses:
                self.assertEqual(failed(case(planned)), [])
        for bad, name in (({"slow": 1.6}, "response_ratio"), ({"failed": 1}, "failed_requests"),
                          ({"received": 1.4}, "received_ratio"), ({"lost": 1}, "lost_updates"),
                          ({"pause_ms": 21.0}, "pause_p99_ms"),
                          ({"violations": 2}, "violations")):
            self.assertEqual(failed(case(one(9), **bad)), [name])
        self.assertEqual(failed(case(of_tpcc(10), others=1.3)), ["others_response_pct"])

    def test_lost_orders_payments_and_deliveries_count(self):
        for name in ("orders", "payments", "deliveries"):
            made = case(one(9))
            tables = made["summary"]["tables"]
            tables[name] = {**tables[name], "lost": 3}
            self.assertEqual(failed(made), ["lost_updates"])

    def test_the_report_says_what_is_like_tpcc(self):
        made = run(case(one(9)))
        page = outcome.render(made, [], [], summary_of(made))
        self.assertIn("2 warehouses, 25/s, like TPC-C", page)

    def test_abrupt_must_be_felt(self):
        abrupt = one(4, plan.ABRUPT)
        self.assertEqual(failed(case(abrupt, failed=0, slow=1.5)), ["abrupt_felt"])
        self.assertEqual(failed(case(abrupt, failed=1, slow=1.0)), [])
        self.assertEqual(failed(case(abrupt, failed=0, slow=1.6)), [])

    def test_a_move_without_an_end_fails(self):
        self.assertEqual(failed(case(one(5), is_over=False)), ["moved"])
        self.assertEqual(failed(case(one(5), moves_s=1000)), ["moved"])

    def test_slow_for_want_of_cpu_time_is_not_judged(self):
        slow = run(case(one(5), slow=1.6, came=0.5))
        self.assertEqual(summary_of(slow)["verdict"], "not judged")
        lost = run(case(one(5), slow=1.6, came=0.5, lost=1))
        self.assertEqual(summary_of(lost)["verdict"], "fail")

    def test_what_others_use_is_not_missing_unless_waited_for(self):
        idle = case(one(5), came=0.5)
        for look in idle["looks"]["cpu"]:
            look["groups"][0]["waited_s"] = 0.0
        self.assertEqual(value(summary_of(run(idle)), "cpu_missing_pct"), 0)

    def test_unknown_is_not_good(self):
        silent = case(one(5))
        silent["looks"] = {name: [] for name in silent["looks"]}
        self.assertEqual(failed(silent), ["received_ratio", "cpu_missing_pct"])
        made = run(silent)
        self.assertIn("not measured", outcome.render(made, [], [], summary_of(made)))

    def test_an_ablation_is_held_to_the_same_bounds(self):
        a = demo.arguments(["migrate", "--ablate"])
        planned = plan.cases_of(a)
        self.assertEqual({c.mode for c in planned}, {plan.ABRUPT})
        made = run(*(case(c, slow=50.0, failed=900, moves_s=1) for c in planned))
        made["ablate"] = True
        summary = summary_of(made)
        self.assertEqual(summary["verdict"], "fail")
        self.assertIn("failed_requests",
                      [c["name"] for c in summary["checks"] if not c["ok"]])

    def test_report_has_the_figures_and_the_tables(self):
        made = run()
        page = outcome.render(made, [], [], summary_of(made))
        for text in ("Figure 2", "Figure 3", "Figure 6", "as in the paper", "8.3 % failed"):
            self.assertIn(text, page)


class Plan(unittest.TestCase):
    def test_names_are_all_different(self):
        for argv in ([], ["--full"], ["--ablate"], ["--full", "--ablate"]):
            names = [c.name for c in plan.cases_of(demo.arguments(["migrate", *argv]))]
            self.assertEqual(len(names), len(set(names)), argv)

    def test_tables_are_chosen(self):
        a = demo.arguments(["migrate", "--tables", "5,10"])
        self.assertEqual({c.table for c in plan.cases_of(a)}, {5, 10})
        self.assertTrue(a.out.endswith("migrate-tables-5-10"))
        for text in ("3", "x", ""):
            with self.assertRaises(SystemExit), contextlib.redirect_stderr(io.StringIO()):
                demo.arguments(["migrate", "--tables", text])

    def test_like_tpcc_is_as_oltp_load_takes_it(self):
        for planned in plan.CASES:
            options = plan.load_options(planned.mix, planned.rows, planned.warehouses)
            self.assertEqual("tpcc" in options, planned.table == 9 or planned.warehouses > 0)
            self.assertEqual("--mix" in options, not planned.warehouses)
        self.assertFalse([c for c in plan.CASES if c.warehouses and c.is_usual])

    def test_guests_are_two_that_reach_each_other(self):
        a = demo.arguments(["migrate", "--guests"])
        self.assertTrue(catalogue.ALL["migrate"].uses_vms(a))
        self.assertFalse(catalogue.ALL["migrate"].uses_vms(demo.arguments(["migrate"])))
        self.assertFalse([c for c in plan.cases_of(a) if c.tenants])
        networks = {ipaddress.ip_interface(text).network
                    for text in (plan.NETWORK, *(vm.address for vm in plan.guests()))}
        self.assertEqual(len(networks), 1)

    def test_a_mix_has_increments_by_which_lost_updates_are_found(self):
        self.assertEqual(plan.mix_words((80, 20, 0, 0)), "select=720,update=180,count=100")


class Meter(unittest.TestCase):
    def test_own_work_is_counted_once(self):
        meter = process_meter.Meter([os.getpid()])
        before = time.thread_time()
        while time.thread_time() < before + 0.1:
            pass
        used = meter.look()
        self.assertGreater(used.ran_s, 0.09)
        self.assertEqual(used.of_process, {os.getpid(): used.ran_s})
        self.assertGreaterEqual(used.machine_s, 0.05)
        self.assertLess(meter.look().ran_s - used.ran_s, 0.05)

    def test_cpus_are_counted_each(self):
        cpus = range(os.cpu_count())
        each, all_of_them = sum(process_meter.busy_s([cpu]) for cpu in cpus), process_meter.busy_s()
        self.assertAlmostEqual(each, all_of_them, delta=0.5)


class Groups(unittest.TestCase):
    """Whose waiting may be whose work."""

    def of(self, nodes, clients):
        plans = SimpleNamespace(more={"cpus": nodes, "client_cpus": clients})
        host = play.Host(SimpleNamespace(out=""), plans)
        return host.groups([SimpleNamespace(pid=1, cpu=nodes[0]),
                            SimpleNamespace(pid=2, cpu=nodes[1])],
                           [SimpleNamespace(process=SimpleNamespace(pid=3))])

    def test_who_shares_cpus_is_together(self):
        self.assertEqual(self.of((0, 1), (0, 1)), [((0, 1), [1, 2, 3])])
        self.assertEqual(self.of((0, 0), (0, 0)), [((0, 0), [1, 2, 3])])

    def test_who_has_cpus_of_its_own_is_apart(self):
        self.assertEqual(self.of((0, 1), (2, 3)), [((0,), [1]), ((1,), [2]), ((2, 3), [3])])


class Asked(unittest.TestCase):
    """Observer, at a made-up node."""

    def ask(self, answers, *words):
        here, there = socket.socketpair()
        with here, there:
            there.sendall(answers)
            observer = Observer(lambda: here, 0.2)
            try:
                return observer.command(*words)
            finally:
                observer.close()

    def test_answers_are_texts(self):
        self.assertEqual(self.ask(b"+OK\r\n$4\r\na:1\n\r\n", "INFO"), "a:1\n")
        self.assertEqual(self.ask(b"+OK\r\n+PONG\r\n", "PING"), "PONG")

    def test_errors_are_no_answers(self):
        for answers in (b"+OK\r\n-ERR no\r\n", b"+OK\r\n", b"+OK\r\n:1\r\n", b""):
            with self.assertRaises(OSError):
                self.ask(answers, "PING")

    def test_a_node_may_refuse_the_name_and_answer(self):
        self.assertEqual(self.ask(b"-ERR moves\r\n+PONG\r\n", "PING"), "PONG")

    def test_a_node_that_is_gone_is_unknown(self):
        self.assertIsNone(Observer(self.refuse).info())

    @staticmethod
    def refuse():
        raise ConnectionRefusedError


class Look(unittest.TestCase):
    def test_info_that_a_node_lacks_is_unknown(self):
        look = node_look({"resident_bytes": "5", "resident_records": "2", "cold_records": "0"})
        self.assertEqual(look["cached_bytes"], 5)
        self.assertIsNone(look["received_bytes"])
        self.assertIsNone(node_look(None))


if __name__ == "__main__":
    unittest.main()
