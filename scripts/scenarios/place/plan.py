# SPDX-License-Identifier: GPL-2.0-or-later
"""Which clusters `place` simulates (verdict.py says what must come out)."""
import os
from dataclasses import dataclass

from harness.stage.plan import Plan

from ..scenario import Option, number

RATIOS = (1.4, 1.6, 1.8, 2.0, 2.2)
ONE_RATIO = 1.8         # of figures 13 and 14
SEEDS = 3
WEEKS = 1               # in the second week 2.2 is too much for any placer
# They differ in look-ahead alone, so nothing else can make the one better than the other.
PLAIN, SUBJECT = "plb+mc+aru", "prv+mc+aru"
# Of figure 14: with and without look-ahead, move costs (mc) and room for new VMs (aru).
COMBINATIONS = tuple(head + mc + aru for head in ("plb", "prv") for mc in ("", "+mc")
                     for aru in ("", "+aru"))
# Each of the others with and without move costs, and with and without room for new VMs.
PAIRS_MC = tuple((c, c.replace("+aru", "") + "+mc" + c[3:]) for c in COMBINATIONS if "mc" not in c)
PAIRS_ARU = tuple((c, c + "+aru") for c in COMBINATIONS if "aru" not in c)
JUDGED_MC, JUDGED_ARU = ("prv+aru", SUBJECT), ("prv+mc", SUBJECT)
MADE_UP = "made up"


@dataclass(frozen=True)
class Job:
    """One call of `ebbctl simulate --place`."""
    traces: str             # a name
    path: str               # "": made up
    ratio: float
    placers: tuple

    def command(self, seed, ablate):
        placers = [option for name in self.placers
                   for option in ("--placer", without_look_ahead(name) if ablate else name)]
        return ["simulate", "--json", "--place", "--ratio", str(self.ratio), "--seed", str(seed),
                "--seeds", "1", "--weeks", str(WEEKS), *placers,
                *(["--demand", self.path] if self.path else [])]


def without_look_ahead(placer):
    return placer.replace("prv", "plb")


def paths(text):
    """{name: path} of paths with commas between them."""
    found = {os.path.basename(os.path.normpath(p)).split(".")[0]: p for p in text.split(",") if p}
    if not found or len(found) != len(text.split(",")):
        raise ValueError(text)
    return found


OPTIONS = (
    Option("--traces", "CPU use of real VMs, files or folders as `ebbctl simulate --demand` reads "
           "them; the verdict is of all of them (default: made-up traces)",
           {"type": paths, "metavar": "PATH,PATH"}),
    Option("--runs", f"seeds from --seed on, 1 to 20 ({SEEDS})",
           {"type": number(1, 20, int), "metavar": "N"}))


def jobs(traces):
    return [Job(name, path, ratio, COMBINATIONS)
            for name, path in traces.items() for ratio in RATIOS]


def of(a):
    cpus = len(os.sched_getaffinity(0))
    host = {"spec": "simulated", "emulated": False, "sockets": 1, "cores": cpus, "threads": 1,
            "share": 1.0, "real_cpus": cpus}
    seeds = [a.seed + i for i in range(a.runs or SEEDS)]
    return Plan(host, "", [], 0.0, more={"jobs": jobs(a.traces or {MADE_UP: ""}),
                                         "seeds": seeds, "parallel": cpus})
