# SPDX-License-Identifier: GPL-2.0-or-later
"""Scenarios that watch VMs over time: a lab, the VMs of the plan, samples of what they hold and do
while the story is played, and files of what was seen."""
import os
import shutil
import signal
import sys
import time
from datetime import datetime, timezone

from harness.lab import versions
from harness.lab.lab import Lab
from harness.lab.process import SetupError
from harness.measure import core_meter, sampling
from harness.record import cores, schema

from . import stage
from .live_table import Table


def play(scenario, a, p, accelerator, conclude):
    """Plays a scenario, records it, and returns what conclude(folder) makes of it."""
    started = time.time()
    log_dir = os.path.join(a.out, "log")
    with Lab(p.host["spec"], p.policy, log_dir, p.agent_options) as lab:
        schema.forget(a.out)
        boot = lab.boot(accelerator)
        try:
            for vm in p.everybody:
                lab.define(boot, vm)
            lab.start_agent()
        except SetupError:
            _keep_logs(lab, log_dir)
            raise
        probe = scenario.probe(lab, boot, p.everybody) if scenario.probe else None
        sampler = sampling.Sampler(lab, [vm.name for vm in p.everybody],
                                   core_meter.of_lab(lab, p.everybody, p.all_cores), probe)
        table = Table(f"Ebb {scenario.name}", [vm.name for vm in p.vms], p.host["cores"])
        scene = stage.Stage(lab, boot, sampler, p, a.time_scale, table)
        sampler.start()
        try:
            if p.yardstick:
                scene.start_yardstick()
            scenario.play(scene, p.dwell_s)
        except stage.SceneError as e:
            print(f"demo: {e}", file=sys.stderr)
        finally:
            said = sampler.stop()
            if said:
                print(f"demo: ebbctl top: {said}", file=sys.stderr)
            _keep_logs(lab, log_dir)
        record(a, p, accelerator, scene, started)
        summary = conclude(a.out)
        if a.keep:
            _wait(lab)
    return summary


def record(a, p, accelerator, scene, started):
    """Writes the recorded samples; the verdict is computed from these files alone."""
    lab, sampler = scene.lab, scene.sampler
    schema.write_samples(os.path.join(a.out, schema.SAMPLES), sampler.samples)
    schema.write_history(os.path.join(a.out, schema.HISTORY),
                         sampling.history(lab, sampler.unix_start))
    if p.records_cores:
        cores.write(os.path.join(a.out, schema.CORES), sampler.meter.rows)
    schema.write_json(os.path.join(a.out, schema.RUN), {
        "scenario": a.scenario, "ablate": a.ablate, "seed": a.seed, "time_scale": a.time_scale,
        "accelerator": accelerator, "host": p.host, "policy": p.policy,
        "vms": [vm.name for vm in p.vms], "has_yardstick": bool(p.yardstick),
        "startup_cpus": p.vms[0].startup_cpus,
        "tier": p.tier, "dwell_s": p.dwell_s, "engine": p.vms[0].options["server"],
        "steps": scene.steps,
        "results": stage.results(scene.boot, p.vms), "interval_s": sampling.INTERVAL_S,
        "agent_cpu_s": lab.agent_cpu_s(), "agent_s": round(sampler.elapsed(), 1),
        **scene.more,
        "started_at": datetime.fromtimestamp(started, timezone.utc).isoformat(timespec="seconds"),
        "duration_s": round(time.time() - started, 1), "versions": versions.of_lab(lab)})


def _keep_logs(lab, log_dir):
    for name in os.listdir(lab.console_dir):
        if name.endswith((".console", ".xml")):
            shutil.copy(os.path.join(lab.console_dir, name), log_dir)
    for path in lab.libvirt_logs():
        shutil.copy(path, log_dir)


def _wait(lab):
    print(f"Still there: virsh -c '{lab.uri}'; {' '.join(lab.ctl())}. Ctrl-C ends it.")
    try:
        signal.pause()
    except KeyboardInterrupt:
        pass
