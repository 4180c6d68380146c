# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs one scenario from set-up to report. See docs/scenarios.md."""
import argparse
import os
import signal
import subprocess
import sys

from harness.lab.lab import SERIES, TOP
from harness.lab.process import SetupError, run
from harness.record import schema
from harness.stage import staged

from . import catalogue, outcome
from .scenario import number

EXIT_USAGE, EXIT_SETUP = 2, 3


def arguments(argv):
    p = _parser()
    a = p.parse_args(argv)
    if a.name and a.scenario and a.name != a.scenario:
        p.error(f"both {a.name} and --scenario {a.scenario} were given")
    a.scenario = a.scenario or a.name or catalogue.DEFAULT
    chosen = catalogue.ALL[a.scenario]
    if a.tier and not chosen.has_tiers:
        p.error(f"--tier is not for the scenario {a.scenario}")
    if a.keep and chosen.is_sliced:
        p.error(f"--keep is not for the scenario {a.scenario}")
    suffix = ""
    for scenario in catalogue.ALL.values():
        for option in scenario.options:
            if not option.value(a):
                continue
            if scenario is not chosen:
                p.error(f"{option.flag} is for the scenario {scenario.name} only")
            if option.is_for_ablation and not a.ablate:
                p.error(f"{option.flag} is for --ablate only")
            suffix += option.suffix(option.value(a))
    if a.ablate:
        suffix += "-ablate"
    a.out = a.out or os.path.join(TOP, "out", a.scenario + suffix)
    return a


def _parser():
    first, *others = catalogue.ALL
    p = argparse.ArgumentParser(
        prog="demo", description="Runs a scenario on real VMs and judges it.",
        epilog="Exit status: 0 verdict pass, 1 verdict fail, 2 usage, 3 set-up failed, 4 not "
               "judged: other programs took too much of the machine.")
    p.add_argument("name", nargs="?", choices=sorted(catalogue.ALL), metavar="SCENARIO",
                   help=f"{first} (default), {', '.join(others[:-1])} or {others[-1]}")
    p.add_argument("--scenario", choices=sorted(catalogue.ALL), help="the same as an option")
    p.add_argument("--ablate", action="store_true",
                   help="without the mechanism (must fail): every VM keeps the CPUs it boots with" +
                   "".join(f"; in {s.name}, {s.words.ablation_help}"
                           for s in catalogue.ALL.values() if s.words.ablation_help))
    for s in catalogue.ALL.values():
        for option in s.options:
            p.add_argument(option.flag, help=f"{s.name}: {option.help}", **option.how)
    p.add_argument("--seed", type=int, default=1, help="of the engines' key sequences (1)")
    p.add_argument("--time-scale", type=number(0.5, 20), default=1.0, metavar="X",
                   help="stretch waits and time bounds by X, 0.5 to 20 (1)")
    p.add_argument("--share", type=number(0.05, 1), metavar="S",
                   help="real CPU per emulated core, 0.05 to 1 (so that all fit the machine)")
    p.add_argument("--tier", choices=("lend", "park", "unplug"),
                   help=f"{', '.join(s.name for s in catalogue.ALL.values() if s.has_tiers)}: how "
                        "CPUs are given back (lend); with unplug, they are plugged when needed")
    p.add_argument("--keep", action="store_true",
                   help="at the end wait, with libvirtd and the agent still there, until Ctrl-C")
    p.add_argument("--out", metavar="DIR", help="where to write (out/SCENARIO[-ablate])")
    return p


def set_up(with_vms, packages=()):
    """Builds all parts; a step whose result is up to date does nothing."""
    if with_vms and os.geteuid() != 0:
        raise SetupError("root is needed: a private libvirtd puts each vCPU into a cgroup of its "
                         "own (try: sudo make demo)")
    # A make that this runs under must not pass its job slots on to one that it does not know.
    env = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    vm_steps = (["scripts/qemu-build"], ["scripts/guest-image", SERIES]) if with_vms else ()
    for step in (["scripts/bootstrap", *packages], *vm_steps,
                 ["make", "--no-print-directory", f"-j{os.cpu_count()}", "all"]):
        if subprocess.run(step, cwd=TOP, env=env, stdin=subprocess.DEVNULL,
                          check=False).returncode:
            raise SetupError(f"{' '.join(step)} failed")


def play(scenario, a):
    """Returns the summary."""
    p = scenario.plan(a)
    accelerator = "none"
    if scenario.uses_vms(a):
        accelerator = run([os.path.join(TOP, "scripts", "accel-probe")], timeout=120).strip()
    if not scenario.is_sliced:
        return staged.play(scenario, a, p, accelerator, outcome.conclude)
    schema.forget(a.out)
    scenario.play(a, p, accelerator)
    return outcome.conclude(a.out)


def _terminated(signum, _frame):
    raise SystemExit(128 + signum)


def main(argv):
    a = arguments(argv)
    scenario = catalogue.ALL[a.scenario]
    for signum in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(signum, _terminated)
    try:
        set_up(scenario.uses_vms(a), scenario.packages)
        os.makedirs(a.out, exist_ok=True)
        summary = play(scenario, a)
    except (SetupError, schema.SchemaError, OSError) as e:
        print(f"demo: {e}", file=sys.stderr)
        return EXIT_SETUP
    except KeyboardInterrupt:
        print("demo: interrupted; everything was taken down", file=sys.stderr)
        return 128 + signal.SIGINT
    print("\n".join(outcome.words(os.path.relpath(a.out), summary)))
    return outcome.EXIT[summary["verdict"]]
