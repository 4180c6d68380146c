# SPDX-License-Identifier: GPL-2.0-or-later
"""Parts of the runner that need no VM: domain XML, plans, what is read from agent and console."""
import dataclasses
import io
import json
import os
import tempfile
import threading
import time
import unittest
import unittest.mock
import xml.etree.ElementTree as ET

import made_up  # noqa: F401: puts scripts/ on the path
from harness.judge import delivery
from harness.lab import domain, lab, process
from harness.measure import sampling, speed
from harness.stage import live_table, plan, stage
from scenarios import demo
from scenarios.contention import plan as plan_contention
from scenarios.isolate import plan as plan_isolate
from scenarios.scale import plan as plan_scale
from scenarios.spot import plan as plan_spot

BOOT = domain.Boot("/qemu", "/vmlinuz", "/initramfs", "console=ttyS0", "tcg", "p-", "/link", "/vm")
EBB = f"{{{domain.EBB_NS}}}"
QEMU = f"{{{domain.QEMU_NS}}}"


def parsed(vm, boot=BOOT):
    return ET.fromstring(domain.xml(boot, vm))


class DisksInMemory(unittest.TestCase):
    def test_only_those_of_the_lab_are_removed(self):
        with tempfile.TemporaryDirectory() as path:
            for name in ("p-vm1.disk0", "q-vm1.disk0", "x-p-vm1.disk0", "p-other"):
                with open(os.path.join(path, name), "w", encoding="ascii"):
                    pass
            lab.remove_disks(path, "")
            lab.remove_disks(path, None)
            self.assertEqual(len(os.listdir(path)), 4)
            lab.remove_disks(path, "p-")
            self.assertEqual(sorted(os.listdir(path)), ["p-other", "q-vm1.disk0", "x-p-vm1.disk0"])
            lab.remove_disks(os.path.join(path, "none"), "p-")


class DomainXml(unittest.TestCase):
    def setUp(self):
        self.vm = domain.Vm("vm1", [domain.Cell(4, 1, 1), domain.Cell(3, 0, 0)],
                            options={"name": "vm1", "server": "--records 9 --verify"})
        self.root = parsed(self.vm)

    def test_startup_vcpus_are_enabled_and_stay(self):
        vcpus = self.root.findall("vcpus/vcpu")
        self.assertEqual(len(vcpus), 7)
        self.assertEqual(self.root.find("vcpu").get("current"), "1")
        for v in vcpus:
            on = v.get("id") == "0"
            self.assertEqual((v.get("enabled"), v.get("hotpluggable")),
                             ("yes", "no") if on else ("no", "yes"))

    def test_cells_cover_the_vcpus(self):
        cells = self.root.findall("cpu/numa/cell")
        self.assertEqual([c.get("cpus") for c in cells], ["0-3", "4-6"])
        memory = sum(int(c.get("memory")) for c in cells)
        self.assertEqual(memory, int(self.root.find("memory").text))
        t = self.root.find("cpu/topology")
        self.assertEqual(int(t.get("sockets")) * int(t.get("cores")) * int(t.get("threads")), 7)

    def test_a_vm_with_an_address_has_a_network_device(self):
        self.assertIsNone(self.root.find("devices/interface"))
        self.vm.address = "10.77.0.2/24"
        root = parsed(self.vm, dataclasses.replace(BOOT, bridge="ebb0"))
        interface = root.find("devices/interface")
        self.assertEqual(interface.get("type"), "bridge")
        self.assertEqual(interface.find("source").get("bridge"), "ebb0")
        self.assertEqual(interface.find("model").get("type"), "virtio")
        self.assertIn(" ebb.net=10.77.0.2/24", root.find("os/cmdline").text)
        self.assertNotIn("net", self.vm.options)

    def test_sla_is_as_the_contract_says(self):
        cpu = self.root.find(f"metadata/{EBB}sla/{EBB}cpu")
        self.assertEqual(cpu.attrib, {"class": "spot", "weight": "100", "deadline-ms": "2000"})
        self.assertEqual([n.attrib for n in cpu.findall(f"{EBB}node")],
                         [{"id": "0", "startup": "1", "max": "4", "host": "1"},
                          {"id": "1", "startup": "0", "max": "3", "host": "0"}])

    def test_sla_says_how_cpus_are_given_back_where_that_matters(self):
        self.vm.tier, self.vm.plug = "park", "ahead"
        cpu = parsed(self.vm).find(f"metadata/{EBB}sla/{EBB}cpu")
        self.assertEqual((cpu.get("tier"), cpu.get("plug")), ("park", "ahead"))

    def test_device_connects_to_the_agents_socket(self):
        args = [a.get("value") for a in self.root.findall(f"{QEMU}commandline/{QEMU}arg")]
        self.assertEqual(args[:3], [
            "-chardev", f"socket,id=ebb0,path=/link/{self.vm.uuid}.sock,reconnect-ms=200",
            "-device"])
        self.assertEqual(json.loads(args[3]), {"driver": "virtio-ebb-pci", "id": "ebb",
                                               "chardev": "ebb0", "addr": "0x1e"})

    def test_options_with_blanks_are_quoted(self):
        self.assertEqual(self.root.find("os/cmdline").text,
                         'console=ttyS0 ebb.name=vm1 ebb.server="--records 9 --verify"')

    def test_prefix_and_accelerator(self):
        self.assertEqual(self.root.find("name").text, "p-vm1")
        self.assertEqual(self.root.get("type"), "qemu")
        kvm = dataclasses.replace(BOOT, accelerator="kvm")
        self.assertEqual(parsed(self.vm, kvm).get("type"), "kvm")


class Pools(unittest.TestCase):
    """A cell with a pool of its own in the XML."""

    def setUp(self):
        self.vm = domain.Vm("vm1", [domain.Cell(2, 2, 0), domain.Cell(2, 0, 1, 512, 64)], 256,
                            mem_weight=7, mem_deadline_ms=900, disks_mib=[8])
        self.root = parsed(self.vm)

    def test_none_without_a_size(self):
        root = parsed(domain.Vm("vm1", [domain.Cell(2, 2)]))
        self.assertIsNone(root.find("maxMemory"))
        self.assertIsNone(root.find("devices/memory"))
        self.assertIsNone(root.find(f"metadata/{EBB}sla/{EBB}memory"))
        self.assertNotIn("pools", root.findall(f"{QEMU}commandline/{QEMU}arg")[-1].get("value"))

    def test_a_virtio_mem_device_that_is_empty_at_first(self):
        (pool,) = self.root.findall("devices/memory")
        self.assertEqual(pool.get("model"), "virtio-mem")
        target = {e.tag: e.text for e in pool.find("target")}
        self.assertEqual(target, {"size": str(512 * 1024), "node": "1", "block": "2048",
                                  "requested": "0"})
        self.assertEqual({e.get("unit") for e in pool.find("target") if e.tag != "node"}, {"KiB"})

    def test_the_device_lists_it_by_its_alias(self):
        alias = self.root.find("devices/memory/alias").get("name")
        self.assertEqual(alias, "ua-ebb-pool1")
        value = self.root.findall(f"{QEMU}commandline/{QEMU}arg")[-1].get("value")
        self.assertEqual(json.loads(value)["pools"], alias)

    def test_room_for_it_but_not_in_the_cells(self):
        cells = sum(int(c.get("memory")) for c in self.root.findall("cpu/numa/cell"))
        self.assertEqual(cells, 256)
        self.assertEqual(self.root.find("maxMemory").text, str(256 + 512))
        self.assertEqual(self.root.find("maxMemory").get("slots"), "1")

    def test_sla_is_as_the_contract_says(self):
        memory = self.root.find(f"metadata/{EBB}sla/{EBB}memory")
        self.assertEqual(memory.attrib, {"weight": "7", "deadline-ms": "900"})
        self.assertEqual([n.attrib for n in memory], [{"id": "1", "min-mib": "64",
                                                       "max-mib": "512"}])

    def test_disks_may_have_a_limit(self):
        self.assertIsNone(self.root.find("devices/disk/iotune"))
        self.vm.read_iops = 500
        self.assertEqual(parsed(self.vm).find("devices/disk/iotune/read_iops_sec").text, "500")

    def test_disks_bypass_the_hosts_cache(self):
        (disk,) = self.root.findall("devices/disk")
        self.assertEqual(disk.find("source").get("file"), "/vm/vm1.disk0")
        self.assertEqual(disk.find("target").attrib, {"dev": "vda", "bus": "virtio"})
        self.assertEqual(disk.find("driver").get("cache"), "none")

    def test_disks_in_memory_where_that_can_be(self):
        self.vm.disks_in_memory = True
        for memory_dir, path in (("/memory", "/memory/p-vm1.disk0"), ("", "/vm/vm1.disk0")):
            root = parsed(self.vm, dataclasses.replace(BOOT, memory_dir=memory_dir))
            self.assertEqual(root.find("devices/disk/source").get("file"), path)


class Plans(unittest.TestCase):
    def test_elastic_vms_may_have_the_whole_host(self):
        for of in (plan_spot, plan_scale):
            p = of.make(False, 1, 1.0)
            for vm in p.vms:
                self.assertEqual(sum(c.max_cpus for c in vm.cells), p.host["cores"])
                self.assertEqual(vm.startup_cpus, 1)
                self.assertEqual(vm.cells[0].startup, 1)
                self.assertEqual(sorted(c.host_node for c in vm.cells), [0, 1])

    def test_ablated_vms_can_neither_grow_nor_shrink(self):
        for of in (plan_spot, plan_scale):
            p = of.make(True, 1, 1.0)
            self.assertEqual(p.policy, "strict")
            for vm in p.vms:
                self.assertTrue(all(c.max_cpus == c.startup for c in vm.cells))

    def test_ablated_spot_divides_the_host(self):
        p = plan_spot.make(True, 1, 1.0)
        for node in (0, 1):
            self.assertEqual(sum(c.startup for vm in p.vms for c in vm.cells
                                 if c.host_node == node), plan.CORES)

    def test_seed_and_time_scale_arrive(self):
        p = plan_spot.make(False, 7, 2.0)
        self.assertIn("--seed 8", p.vms[1].options["server"])
        self.assertEqual(p.dwell_s, 2 * plan_spot.DWELL_S)

    def test_spot_lends_unless_told_otherwise(self):
        for tier, wanted, plug in ((None, "lend", "ahead"), ("park", "park", "ahead"),
                                   ("unplug", "unplug", "demand")):
            p = plan_spot.make(False, 1, 1.0, tier=tier)
            self.assertEqual(p.tier, wanted)
            self.assertEqual({(vm.tier, vm.plug) for vm in p.vms}, {(wanted, plug)})
        self.assertEqual(plan_scale.make(False, 1, 1.0).tier, "unplug")

    def test_all_emulated_cores_fit_the_machine(self):
        for of in (plan_spot, plan_scale):
            p = of.make(False, 1, 1.0)
            used = p.host["cores"] + bool(p.yardstick)
            self.assertLessEqual(p.host["share"] * used, p.host["real_cpus"])

    def test_the_yardstick_has_a_socket_of_its_own(self):
        for p in (plan_scale.make(False, 1, 1.0), plan_isolate.make(True, 1, 1.0),
                  plan_contention.make(False, 1, 1.0)):
            self.assertEqual([(c.max_cpus, c.startup, c.host_node) for c in p.yardstick.cells],
                             [(1, 1, 2)])
            self.assertEqual({c.host_node for vm in p.vms for c in vm.cells}, {0, 1})
            self.assertTrue(p.host["spec"].startswith(f"emulated:3x{p.host['cores'] // 2}x"))
            self.assertEqual(p.all_cores, p.host["cores"] * 3 // 2)
            self.assertEqual([vm.name for vm in p.everybody][-1], "yardstick")
        self.assertIsNone(plan_spot.make(False, 1, 1.0).yardstick)


class FromTheAgent(unittest.TestCase):
    VM = {"name": "p-vm1", "state": "running", "cpus_held": 3, "cpus_limit": 4, "cpus_target": 4,
          "driver": True, "nodes": [{"held": 2}, {"held": 1}],
          "telemetry": {"committed": 1000, "aborted": 10, "failed": 0, "workers": 3,
                        "p50_us": 100, "p95_us": 300, "p99_us": 900, "age_ms": 100}}

    def later(self, **told):
        return dict(self.VM, telemetry=dict(self.VM["telemetry"], **told))

    def fed(self, reports):
        """The last sample of reports [(t_s, committed, aborted, age_ms)]."""
        rates, s = sampling.Rates(), None
        for t_s, committed, aborted, age_ms in reports:
            s = sampling.sample_of(self.later(committed=committed, aborted=aborted,
                                              age_ms=age_ms), "vm1", t_s, rates)
        return s

    def test_rates_are_over_the_last_second(self):
        s = self.fed([(1 + i / 4, 1000 + 500 * i, 10 + 5 * i, 100) for i in range(9)])
        self.assertAlmostEqual(s.tps, 2000)
        self.assertAlmostEqual(s.aborts_ps, 20)
        self.assertEqual((s.cpus_held, s.nodes_held, s.workers, s.p99_us), (3, "2/1", 3, 900))

    def test_what_is_older_than_a_second_does_not_count(self):
        fast = [(1 + i / 4, 10000 * i, 0, 0) for i in range(9)]
        slow = [(3 + i / 4, 80000 + 100 * i, 0, 0) for i in range(1, 5)]
        self.assertAlmostEqual(self.fed(fast + slow).tps, 400)

    def test_no_rate_from_too_short_a_time(self):
        self.assertIsNone(self.fed([(1, 1000, 0, 0)]).tps)
        self.assertIsNone(self.fed([(1, 1000, 0, 0), (1.25, 1500, 0, 0)]).tps)

    def test_reports_that_arrive_together_make_no_peak(self):
        late = [(1 + i / 4, 500 * i, 0, 0) for i in range(6)] + \
            [(3.0, 3500, 0, 0), (3.03, 4000, 0, 0)]
        self.assertLess(self.fed(late).tps, 2500)

    def test_a_report_seen_twice_does_not_change_the_rate(self):
        once = [(1 + i / 4, 500 * i, 0, 100) for i in range(6)]
        again = self.fed(once + [(2.35, 2500, 0, 200)])
        self.assertAlmostEqual(again.tps, self.fed(once).tps)
        self.assertEqual(again.report_age_ms, 200)

    def test_another_engine_starts_anew(self):
        s = self.fed([(1 + i / 4, 500 * i, 0, 0) for i in range(6)] + [(2.5, 5, 0, 0)])
        self.assertIsNone(s.tps)

    def test_vm_without_reports(self):
        s = sampling.sample_of(dict(self.VM, telemetry=None, driver=False), "vm1", 1.0,
                               sampling.Rates())
        self.assertEqual((s.tps, s.p50_us, s.workers, s.driver), (None, None, 0, 0))

    def test_history_row(self):
        e = sampling.event_of({"ts": 105.5, "vm": "p-vm2", "event": "grant", "node": 1, "cpus": 2,
                               "agent_ms": 1.0, "libvirt_ms": 20.0, "place_ms": 0.5,
                               "total_ms": 21.5, "reason": "offer"}, "p-", 100.0)
        self.assertEqual((e.t_s, e.vm, e.event, e.cpus, e.node, e.total_ms, e.reason),
                         (5.5, "vm2", "grant", 2, 1, 21.5, "offer"))
        self.assertEqual(e.phases_ms, {"agent": 1.0, "libvirt": 20.0, "place": 0.5})

    def test_history_row_about_the_host(self):
        e = sampling.event_of({"ts": 1, "vm": None, "event": "policy", "node": None,
                               "reason": "fair"}, "p-", 0)
        self.assertEqual((e.vm, e.node, e.cpus, e.total_ms), ("", None, 0, None))


class Speed(unittest.TestCase):
    def test_speed_is_work_per_cpu_time_and_the_mean_of_the_cpus(self):
        self.assertEqual(speed.speed_of([(0, 0), (1000, 1e6)], [(3000, 2e6), (4000, 2e6)]),
                         (1500 + 3000) / 2)
        self.assertIsNone(speed.speed_of([(0, 0), (1000, 1e6)], [(3000, 2e6), (1000, 1e6)]))

    def test_it_is_measured_on_this_machine(self):
        meter = speed.SpeedMeter()
        self.addCleanup(meter.stop)
        end = time.monotonic() + 60
        found = None
        while found is None and time.monotonic() < end:
            time.sleep(0.1)
            found = meter.read(time.monotonic())
        self.assertGreater(found, 0)


class FollowsTheAgent(unittest.TestCase):
    def sampled(self, begin, end):
        """The sample of a look of the agent's, whose CPU times were read from begin to end."""
        s = sampling.Sampler.__new__(sampling.Sampler)
        s.prefix, s.vms, s.unix_start = "p-", ["vm1"], 1000.0
        s.samples, s.now, s.lock, s.rates = [], {}, threading.Lock(), sampling.Rates()
        s.speed, s.pauses = unittest.mock.Mock(), unittest.mock.Mock()
        s.speed.read.return_value, s.pauses.read.return_value = 12000.0, 0.0
        s.meter, s.probe, s.tour = unittest.mock.Mock(), None, unittest.mock.Mock()
        s.meter.given = {"vm1": delivery.Delivered(0.5, 0.625)}
        s.elapsed = unittest.mock.Mock(side_effect=[begin, end])
        # The line came 0.7 s late, as on a machine on which this program has to wait.
        s._take(6.2, {"ts": 1005.5, "vms": [FromTheAgent.VM]})
        s.meter.look.assert_called_once_with(begin)
        (sample,) = s.samples
        return sample

    def test_a_sample_is_of_the_moment_at_which_the_agent_looked(self):
        sample = self.sampled(6.21, 6.23)
        self.assertEqual((sample.t_s, sample.read_t_s), (5.5, 6.22))
        self.assertEqual((sample.cpu_ms, sample.cpu_due_ms), (500.0, 625.0))

    def test_cpu_times_of_no_known_moment_are_left_out(self):
        sample = self.sampled(6.21, 7.4)
        self.assertEqual((sample.t_s, sample.read_t_s), (5.5, 6.2))
        self.assertEqual((sample.cpu_ms, sample.cpu_due_ms), (None, None))


class Console(unittest.TestCase):
    def result(self, text):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "vm1.console")
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
            return stage.result_of(path)

    def test_last_line_counts(self):
        r = self.result('boot\noltp-result {"failed_transactions": 9, "lost_updates": 9}\n'
                        'oltp-result {"failed_transactions": 1, "lost_updates": 0}\nend\n')
        self.assertEqual((r["failed"], r["lost_updates"]), (1, 0))

    def test_cut_or_missing_lines_are_no_result(self):
        self.assertIsNone(self.result('oltp-result {"failed_transactions": 1, "lo'))
        self.assertIsNone(self.result("ebb-init: end poweroff\n"))
        self.assertIsNone(self.result('oltp-result {"committed": 1}\n'))
        self.assertIsNone(stage.result_of("/nowhere/at/all"))


class LiveTable(unittest.TestCase):
    def test_lines_are_appended_where_there_is_no_terminal(self):
        out = io.StringIO()
        t = live_table.Table("Ebb spot", ["vm1", "vm2"], 8, out)
        s = sampling.sample_of(FromTheAgent.VM, "vm1", 1.0, sampling.Rates())
        t.show(0.0, {"vm1": s}, "starting")
        t.show(0.1, {"vm1": s}, "too soon")
        self.assertEqual(out.getvalue().count("\n"), 1)
        self.assertIn("vm1 runs 3/4", out.getvalue())
        self.assertIn("vm2 off", out.getvalue())

    def test_row_shows_what_is_held_of_the_limit(self):
        s = sampling.sample_of(FromTheAgent.VM, "vm1", 1.0, sampling.Rates())
        self.assertIn("3/4  ###.", live_table.row("vm1", s, 8))
        self.assertIn("900 us", live_table.row("vm1", s, 8))


class Arguments(unittest.TestCase):
    def test_defaults(self):
        a = demo.arguments([])
        self.assertEqual((a.scenario, a.ablate, a.seed, a.time_scale), ("spot", False, 1, 1.0))
        self.assertTrue(a.out.endswith("out/spot"))

    def test_ablation_has_a_folder_of_its_own(self):
        self.assertTrue(demo.arguments(["scale", "--ablate"]).out.endswith("out/scale-ablate"))

    def test_usage_errors(self):
        for argv in (["other"], ["spot", "--scenario", "scale"], ["--time-scale", "0"],
                     ["--share", "2"], ["--seed", "x"]):
            with self.assertRaises(SystemExit) as caught, \
                    unittest.mock.patch("sys.stderr", io.StringIO()):
                demo.arguments(argv)
            self.assertEqual(caught.exception.code, demo.EXIT_USAGE, argv)


class InGuest(unittest.TestCase):
    def test_a_terminal_that_is_not_free_yet_is_tried_again(self):
        refusals = [process.SetupError("vm-exec: Connection refused")] * 2
        guest = domain.Vm("vm1", [domain.Cell(1, 1)])
        with unittest.mock.patch.object(lab, "run", side_effect=[*refusals, "done"]) as run, \
                unittest.mock.patch.object(lab.time, "sleep"):
            self.assertEqual(lab.Lab.in_guest(None, BOOT, guest, "true"), "done")
            self.assertEqual(run.call_count, 3)

    def test_other_failures_are_failures(self):
        guest = domain.Vm("vm1", [domain.Cell(1, 1)])
        with unittest.mock.patch.object(lab, "run", side_effect=process.SetupError("no")) as run:
            with self.assertRaises(process.SetupError):
                lab.Lab.in_guest(None, BOOT, guest, "true")
            self.assertEqual(run.call_count, 1)


if __name__ == "__main__":
    unittest.main()
