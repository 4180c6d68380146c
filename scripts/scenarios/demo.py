# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs one scenario from set-up to report. See docs/scenarios.md."""
import argparse
import os
import shutil
import signal
import subprocess
import sys
import time
from datetime import datetime, timezone

from . import cores, outcome, plan, plan_engine, scene_engine, schema
from . import stage as scenes
from .broker import plan as plan_broker
from .memory import plan as plan_memory
from .rebalance import plan as plan_rebalance
from .broker import play as scene_broker
from .memory import play as scene_memory
from .rebalance import play as scene_rebalance
from .scaleout import play as scene_scaleout
from .tenants import play as scene_tenants
from .lab import BUILD, SERIES, TOP, Lab, SetupError, run
from .sampling import Sampler, event_of
from .stage import SceneError, Stage

EXIT_USAGE, EXIT_SETUP = 2, 3
HISTORY_ROWS = 100000
# Those that compare two set-ups in slices of time instead of watching one over time.
SLICED = ("scaleout", "tenants")
NAMES = sorted([*scenes.SCENES, *SLICED])


def arguments(argv):
    p = argparse.ArgumentParser(
        prog="demo", description="Runs a scenario on real VMs and judges it.",
        epilog="Exit status: 0 verdict pass, 1 verdict fail, 2 usage, 3 set-up failed, 4 not "
               "judged: other programs took too much of the machine.")
    p.add_argument("name", nargs="?", choices=NAMES, metavar="SCENARIO",
                   help="spot (default), scale, memory, contention, peak, isolate, broker, "
                        "rebalance, scaleout or tenants")
    p.add_argument("--scenario", choices=NAMES, help="the same as an option")
    p.add_argument("--ablate", action="store_true",
                   help="without the mechanism (must fail): every VM keeps the CPUs it boots with; "
                        "in memory, the engine cannot move records to disk; in contention, it "
                        "keeps all CPUs; in isolate, the policy is fair; in broker, a black-box "
                        "policy takes the place of the value of memory; in rebalance, nothing is "
                        "rebalanced; in "
                        "scaleout, remote operations are executed locally; in tenants, the VMs' "
                        "cores are not their own")
    p.add_argument("--close-up", action="store_true",
                   help="peak: traffic doubles every 0.5 s, not every 5 s, in windows of 0.1 s")
    p.add_argument("--joins", type=number_of_joins, metavar="N",
                   help="spot: how often a VM joins, 3 to 30; beyond the third VMs leave and come "
                        "again (3)")
    p.add_argument("--load", choices=tuple(plan_broker.LOADS),
                   help="broker: what both databases run: ycsb (default), ycsb-short, which has "
                        "half of the data and takes 15 minutes, or tpcc, which is like TPC-C")
    p.add_argument("--policies", type=some_policies, metavar="A,B",
                   help="broker: only these rounds, of vom, equal, proportional and balloon; fails "
                        "unless it is all of them")
    p.add_argument("--seeds", type=number_of_seeds, metavar="N",
                   help="rebalance: how many sequences of bursts, from the seed on, 1 to 5 (1)")
    p.add_argument("--seed", type=int, default=1, help="of the engines' key sequences (1)")
    p.add_argument("--time-scale", type=scale_factor, default=1.0, metavar="X",
                   help="stretch waits and time bounds by X, 0.5 to 20 (1)")
    p.add_argument("--share", type=share_of_cpu, metavar="S",
                   help="real CPU per emulated core, 0.05 to 1 (so that all fit the machine)")
    p.add_argument("--tier", choices=("lend", "park", "unplug"),
                   help="how CPUs are given back (lend; scale and memory: unplug); with unplug, "
                        "they are plugged when needed")
    p.add_argument("--keep", action="store_true",
                   help="at the end wait, with libvirtd and the agent still there, until Ctrl-C")
    p.add_argument("--out", metavar="DIR", help="where to write (out/SCENARIO[-ablate])")
    a = p.parse_args(argv)
    if a.name and a.scenario and a.name != a.scenario:
        p.error(f"both {a.name} and --scenario {a.scenario} were given")
    a.scenario = a.scenario or a.name or "spot"
    if a.tier and a.scenario in ("scale", "memory", "broker", "rebalance", *SLICED):
        p.error(f"--tier is not for the scenario {a.scenario}")
    if a.keep and a.scenario in SLICED:
        p.error(f"--keep is not for the scenario {a.scenario}")
    if a.close_up and a.scenario != "peak":
        p.error("--close-up is for the scenario peak only")
    if a.joins and a.scenario != "spot":
        p.error("--joins is for the scenario spot only")
    if (a.load or a.policies) and a.scenario != "broker":
        p.error("--load and --policies are for the scenario broker only")
    if a.seeds and a.scenario != "rebalance":
        p.error("--seeds is for the scenario rebalance only")
    a.out = a.out or os.path.join(TOP, "out", a.scenario + ("-close-up" if a.close_up else "") +
                                  (f"-{a.load}" if a.load else "") +
                                  ("-ablate" if a.ablate else ""))
    return a


def scale_factor(text):
    return _number(text, 0.5, 20)


def share_of_cpu(text):
    return _number(text, 0.05, 1)


def number_of_joins(text):
    return _number(text, 3, 30, int)


def number_of_seeds(text):
    return _number(text, 1, plan_rebalance.MAX_SEEDS, int)


def some_policies(text):
    names = text.split(",")
    if len(set(names)) != len(names) or not set(names) <= set(plan_broker.POLICIES):
        raise argparse.ArgumentTypeError(f"{text}: allowed are {','.join(plan_broker.POLICIES)}")
    return names


def _number(text, low, high, kind=float):
    value = kind(text)
    if not low <= value <= high:
        raise argparse.ArgumentTypeError(f"{text} is not between {low:g} and {high:g}")
    return value


def set_up(with_vms):
    """Builds what is missing; each step finds out by itself whether there is something to do."""
    if with_vms and os.geteuid() != 0:
        raise SetupError("root is needed: a private libvirtd puts each vCPU into a cgroup of its "
                         "own (try: sudo make demo)")
    # A make that this runs under must not pass its job slots on to one that it does not know.
    env = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    vm_steps = (["scripts/qemu-build"], ["scripts/guest-image", SERIES]) if with_vms else ()
    for step in (["scripts/bootstrap"], *vm_steps,
                 ["make", "--no-print-directory", f"-j{os.cpu_count()}", "all"]):
        if subprocess.run(step, cwd=TOP, env=env, stdin=subprocess.DEVNULL,
                          check=False).returncode:
            raise SetupError(f"{' '.join(step)} failed")


def _first_line(args):
    return run(args, check=False).strip().split("\n")[0]


def program_versions():
    """Of what takes part without a VM."""
    return {"ebb": _first_line(["git", "-C", TOP, "describe", "--always", "--dirty"]) or "unknown",
            "host_kernel": os.uname().release, "python": sys.version.split()[0]}


def versions(lab):
    with open(os.path.join(BUILD, "guest", SERIES, "version"), encoding="ascii") as f:
        guest = f.read().strip()
    qemu = os.path.join(BUILD, "qemu", "bin", "qemu-system-x86_64-ebb")
    return {**program_versions(),
            "qemu": _first_line([qemu, "--version"]).removeprefix("QEMU emulator version "),
            "libvirt": _first_line(["virsh", "-c", lab.uri, "-v"]), "guest_kernel": guest}


def record(a, p, lab, accelerator, stage, sampler, started):
    """Writes what was seen; the verdict is computed from these files alone."""
    rows = lab.ask("history", "--limit", str(HISTORY_ROWS))
    rows = rows["history"] if isinstance(rows, dict) else rows
    events = sorted((event_of(row, lab.prefix, sampler.unix_start) for row in rows),
                    key=lambda e: e.t_s)
    schema.write_samples(os.path.join(a.out, schema.SAMPLES), sampler.samples)
    schema.write_history(os.path.join(a.out, schema.HISTORY), events)
    if a.scenario == plan_rebalance.SCENARIO:
        cores.write(os.path.join(a.out, cores.CORES), sampler.meter.rows)
    schema.write_json(os.path.join(a.out, schema.RUN), {
        "scenario": a.scenario, "ablate": a.ablate, "seed": a.seed, "time_scale": a.time_scale,
        "accelerator": accelerator, "host": p.host, "policy": p.policy,
        "vms": [vm.name for vm in p.vms], "has_yardstick": bool(p.yardstick),
        "startup_cpus": p.vms[0].startup_cpus,
        "tier": p.tier, "dwell_s": p.dwell_s, "engine": p.vms[0].options["server"],
        "steps": stage.steps,
        "results": scenes.results(stage.boot, p.vms), "interval_s": sampler_interval(),
        "agent_cpu_s": lab.agent_cpu_s(), "agent_s": round(sampler.elapsed(), 1),
        **stage.more,
        "started_at": datetime.fromtimestamp(started, timezone.utc).isoformat(timespec="seconds"),
        "duration_s": round(time.time() - started, 1), "versions": versions(lab)})


def sampler_interval():
    from .sampling import INTERVAL_S
    return INTERVAL_S


def plan_of(a):
    options = (a.ablate, a.seed, a.time_scale, a.share)
    if a.scenario == plan_memory.SCENARIO:
        return plan_memory.make(*options)
    if a.scenario == plan_broker.SCENARIO:
        return plan_broker.make(*options, a.load or "ycsb", a.policies or plan_broker.POLICIES)
    if a.scenario == plan_rebalance.SCENARIO:
        return plan_rebalance.make(*options, a.seeds or 1)
    if a.scenario in plan_engine.SCENARIOS:
        return plan_engine.make(a.scenario, *options, a.tier, a.close_up)
    return plan.make(a.scenario, *options, a.tier)


def play(a, p, accelerator):
    """The scenario itself; returns the summary."""
    started = time.time()
    log_dir = os.path.join(a.out, "log")
    is_memory = a.scenario == plan_memory.SCENARIO
    with Lab(p.host["spec"], p.policy, log_dir, getattr(p, "agent_options", None)) as lab:
        _forget(a.out)
        boot = lab.boot(accelerator)
        try:
            for vm in p.everybody:
                lab.define(boot, vm)
            lab.start_agent()
        except SetupError:
            _keep_logs(lab, log_dir)
            raise
        meter = lab.core_meter(p.everybody, p.all_cores, plan_rebalance.WINDOW_S)
        sampler = Sampler(lab, [vm.name for vm in p.everybody], meter,
                          _probe(a.scenario, lab, boot, p.everybody))
        stage = Stage(lab, boot, sampler, p.vms, a.time_scale,
                      scenes.table_for(f"Ebb {a.scenario}", p.vms, p.host["cores"]))
        if is_memory:
            stage.more["memory"] = p.memory
        if a.scenario == plan_broker.SCENARIO:
            stage.more["broker"] = p.broker
        if a.scenario == plan_rebalance.SCENARIO:
            stage.more["rebalance"] = p.rebalance
        if a.scenario in plan_engine.SCENARIOS:
            stage.more.update(load=p.load, policy=p.policy)
        if a.scenario == "spot":
            stage.more["joins"] = a.joins or len(p.vms)
        sampler.start()
        try:
            if p.yardstick:
                stage.start_yardstick()
            scenes.SCENES[a.scenario](stage, p.dwell_s)
        except SceneError as e:
            print(f"demo: {e}", file=sys.stderr)
        finally:
            said = sampler.stop()
            if said:
                print(f"demo: ebbctl top: {said}", file=sys.stderr)
            _keep_logs(lab, log_dir)
        record(a, p, lab, accelerator, stage, sampler, started)
        summary = outcome.conclude(a.out)
        if a.keep:
            _wait(lab)
    return summary


def _probe(scenario, lab, boot, vms):
    if scenario == plan_memory.SCENARIO:
        return scene_memory.Probe(lab, boot, vms)
    if scenario == plan_broker.SCENARIO:
        return scene_broker.Probe(boot, vms)
    if scenario == plan_rebalance.SCENARIO:
        return scene_rebalance.Probe()
    if scenario in plan_engine.SCENARIOS:
        return scene_engine.EngineProbe(boot, vms)
    return None


def play_sliced(a):
    """A scenario in slices; returns the summary."""
    _forget(a.out)
    if a.scenario == "scaleout":
        return scene_scaleout.play(a, program_versions())
    accelerator = run([os.path.join(TOP, "scripts", "accel-probe")], timeout=120).strip()
    return scene_tenants.play(a, accelerator, versions)


def _forget(folder):
    """Results of an earlier run must not be taken for those of this one."""
    for name in (schema.SAMPLES, schema.HISTORY, schema.RUN, schema.SUMMARY, schema.REPORT,
                 cores.CORES):
        if os.path.exists(os.path.join(folder, name)):
            os.unlink(os.path.join(folder, name))


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


def _terminated(number, _frame):
    raise SystemExit(128 + number)


def main(argv):
    a = arguments(argv)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _terminated)
    try:
        set_up(with_vms=a.scenario != "scaleout")
        os.makedirs(a.out, exist_ok=True)
        if a.scenario in SLICED:
            summary = play_sliced(a)
        else:
            accelerator = run([os.path.join(TOP, "scripts", "accel-probe")], timeout=120).strip()
            summary = play(a, plan_of(a), accelerator)
    except (SetupError, schema.SchemaError, OSError) as e:
        print(f"demo: {e}", file=sys.stderr)
        return EXIT_SETUP
    except KeyboardInterrupt:
        print("demo: interrupted; everything was taken down", file=sys.stderr)
        return 128 + signal.SIGINT
    print("\n".join(outcome.words(os.path.relpath(a.out), summary)))
    return outcome.EXIT[summary["verdict"]]
