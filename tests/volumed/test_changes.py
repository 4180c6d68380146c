# SPDX-License-Identifier: GPL-2.0-or-later
"""Changes that meet a storage daemon that starts or opens a volume, and calibrations."""
import json
import os
import signal
import threading
import time

from harness.lab import nbd
from rig import VolumeCase

MIB = 1 << 20


class Changes(VolumeCase):
    def hold(self):
        """From now on a storage daemon does not come up; returns a function that lets it."""
        gate = os.path.join(self.dir, "gate")
        script = os.path.join(self.dir, "held")
        with open(gate, "w", encoding="utf-8"):
            pass
        with open(script, "w", encoding="utf-8") as f:
            f.write(f"#!/bin/sh\nwhile [ -e {gate} ]; do sleep 0.02; done\n"
                    f"exec {self.env['EBB_STORAGE_DAEMON']} \"$@\"\n")
        os.chmod(script, 0o755)
        self.env["EBB_STORAGE_DAEMON"] = script
        return lambda: os.unlink(gate)

    def answers(self):
        try:
            return self.ask("version")["ok"]
        except OSError:
            return False

    def add(self, name, **keys):
        path = self.volume(name)
        del self.volumes[name]
        return dict({"volume": name, "tenant": "t", "file": path}, **keys)

    def in_thread(self, cmd, members):
        result = []
        thread = threading.Thread(target=lambda: result.append(self.ask(cmd, **members)))
        thread.start()
        return thread, result

    def stopped(self):
        """Stop the storage daemon; returns a function that lets it go on."""
        pid = self.done("volumes")["server"]["pid"]
        os.kill(pid, signal.SIGSTOP)
        self.addCleanup(lambda: os.path.exists(f"/proc/{pid}") and os.kill(pid, signal.SIGCONT))
        return lambda: os.kill(pid, signal.SIGCONT)

    def promised(self, name):
        """Return units per second that the meter counts as promised."""
        grown = self.counted(1)[name]
        return grown["promised"]

    def saved(self):
        with open(os.path.join(self.dir, "state/volumes.json"), encoding="utf-8") as f:
            return json.load(f)

    def test_while_it_starts(self):
        self.volume("a")
        server = self.start()
        b = self.add("b")
        self.done("volume-add", **b)
        self.stop(server)
        let_go = self.hold()
        self.launch()
        self.wait_until(self.answers, "it answers")
        self.assertFalse(self.done("volumes")["server"]["up"])
        self.done("volume-set", volume="a", reserve_iops=1000)
        self.done("volume-remove", volume="b")
        self.refused("no-such-volume", "volume-set", volume="b", reserve_iops=1)
        let_go()
        self.wait_until(self.is_up, "the server serves")
        self.wait_until(lambda: len(self.done("volumes")["volumes"]) == 1, "it is removed")
        self.assertGreater(self.promised("a"), 500)
        with self.assertRaisesRegex(nbd.Refused, "b"):
            nbd.Client(self.nbd, "b")
        self.done("volume-add", **b)

    def test_storage_daemon_that_does_not_come_up(self):
        self.volume("a")
        let_go = self.hold()
        self.launch()
        self.wait_until(lambda: self.events("storage_daemon_slow"), "the log says so")
        let_go()
        self.wait_until(self.is_up, "the server serves")
        self.assertEqual(self.events("storage_daemon_died"), [])

    def test_more_volumes_than_a_command_line_can_name(self):
        """Some 2 MB for all arguments; each of these paths has more than 3 KiB."""
        folder = os.path.join(self.dir, *["d" * 200] * 16)
        os.makedirs(folder)
        volumes = [{"name": f"v{i}", "tenant": "t", "file": os.path.join(folder, f"v{i}.img")}
                   for i in range(660)]
        for v in volumes:
            with open(v["file"], "wb") as f:
                f.truncate(MIB)
        os.mkdir(os.path.join(self.dir, "state"))
        with open(os.path.join(self.dir, "state/volumes.json"), "w", encoding="utf-8") as f:
            json.dump({"volumes": volumes}, f)
        self.start()
        later, = self.events("volumes_opened_later")
        num_later = int(later.split(" volumes=")[1].split(" ")[0])
        self.assertTrue(20 < num_later < 400, later)
        for name in ("v0", "v659"):
            self.assertEqual(self.qemu_io(name, "write 0 64k").returncode, 0)
        states = {v["state"] for v in self.done("volumes")["volumes"]}
        self.assertEqual(states, {"served"})
        # Of one that was opened later a change of its promise is told, too.
        self.done("volume-set", volume="v659", reserve_iops=1000)
        self.assertGreater(self.promised("v659"), 500)

    def test_while_a_volume_is_opened(self):
        self.volume("a")
        self.start()
        let_go = self.stopped()
        thread, result = self.in_thread("volume-add", self.add("b"))
        self.wait_until(lambda: len(self.done("volumes")["volumes"]) == 2, "it is being added")
        self.done("volume-set", volume="b", reserve_iops=1000)
        let_go()
        thread.join()
        self.assertTrue(result[0]["ok"], result)
        self.assertEqual(result[0]["volume"]["reserve_iops"], 1000)
        self.assertGreater(self.promised("b"), 500)

    def test_what_is_refused_is_not_kept(self):
        self.volume("a")
        self.start()
        self.done("volume-add", **self.add("b"))
        let_go = self.stopped()
        thread, result = self.in_thread("volume-add", dict(self.add("c"), file="/nonexistent"))
        self.wait_until(lambda: len(self.done("volumes")["volumes"]) == 3, "it is being added")
        self.done("volume-remove", volume="b")
        let_go()
        thread.join()
        self.assertEqual(result[0]["error"]["code"], "refused", result)
        self.assertEqual(self.saved()["volumes"], [])

    def test_disk_that_does_less_than_is_promised(self):
        self.volume("a", reserve_iops=600)
        self.volume("b", reserve_iops=600)
        os.mkdir(os.path.join(self.dir, "state"))
        with open(os.path.join(self.dir, "state/volumes.json"), "w", encoding="utf-8") as f:
            json.dump({"capacity": {"iops": 1000, "depth": 4}, "volumes": []}, f)
        self.start()
        self.assertIn("1200 requests per second", self.events("overbooked")[0])
        self.refused("overbooked", "volume-set", volume="a", reserve_iops=601)
        # What takes nothing from others is no promise of more.
        self.done("volume-set", volume="a", weight=7)
        self.done("volume-set", volume="a", reserve_iops=500)

    def test_calibration_that_fails(self):
        self.volume("a")
        self.start()
        depth = self.done("volumes")["server"]["depth"]
        path = os.path.join(self.dir, "small")
        with open(path, "wb") as f:
            f.truncate(8 * MIB)
        thread, result = self.in_thread("calibrate", {"file": path})
        self.wait_until(lambda: len(self.done("volumes")["volumes"]) == 2, "it is calibrated")
        self.assertIn("calibration", self.refused("failed", "scheduler", depth=5))
        while thread.is_alive():
            self.assertEqual(self.done("volumes")["server"]["capacity_iops"], 0)
            time.sleep(0.2)
        self.assertIn("too small", result[0]["error"]["message"])
        server = self.done("volumes")["server"]
        self.assertEqual((server["depth"], server["capacity_iops"]), (depth, 0))
