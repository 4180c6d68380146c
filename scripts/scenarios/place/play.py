# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs the simulations of `place`, as many at once as there are CPUs."""
import json
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor

from harness.lab import versions
from harness.lab.lab import BUILD
from harness.lab.process import SetupError
from harness.record.schema import Sample
from harness.stage import sliced_run

HOST_CPUS, HOST_MIB = 64, 320 * 1024    # of a host in the simulation
DAY_S = 86400.0
MIB = 1 << 20


def simulate(job, seed, ablate):
    """[run], each with the name of the placer that it stands for."""
    command = job.command(seed, ablate)
    done = subprocess.run([os.path.join(BUILD, "host", "bin", "ebbctl"), *command],
                          capture_output=True, text=True, check=False)
    if done.returncode:
        raise SetupError(f"ebbctl {' '.join(command)}: {done.stderr.strip()}")
    told = json.loads(done.stdout)
    return [{"traces": job.traces, "ratio": job.ratio, "hosts": told["hosts"],
             "filled": told["filled"], "dropped": told["dropped"], "as": name, **run}
            for name, run in zip(job.placers, told["runs"])]


def samples_of(run):
    """A row for each day: what of the cluster was in use, in CPUs and bytes."""
    cpus, memory = run["hosts"] * HOST_CPUS, run["hosts"] * HOST_MIB * MIB
    return [Sample((i + 1) * DAY_S, f"{run['traces']} x{run['ratio']:g}",
                   round(day["used"]["cpu"] * cpus), cpus, round(day["used"]["memory"] * memory),
                   memory, None, None, None, None, variant=run["as"], turn=run["seed"])
            for i, day in enumerate(run["days"])]


def play(a, p, accelerator):
    found = sliced_run.Slices()
    runs = []
    found.step("start", "", f"{len(p.more['jobs'])} clusters, each with "
               f"{len(p.more['seeds'])} seeds")
    with ThreadPoolExecutor(p.more["parallel"]) as pool:
        waiting = [(job, seed, pool.submit(simulate, job, seed, a.ablate))
                   for job in p.more["jobs"] for seed in p.more["seeds"]]
        for job, seed, answer in waiting:
            runs += answer.result()
            found.step("simulated", "", f"{job.traces}, over-subscription {job.ratio:g}, "
                       f"seed {seed}: {len(job.placers)} placers")
    for run in runs:
        found.samples += samples_of(run)
    sliced_run.record(a, p, accelerator, found, {}, versions.of_programs(),
                      engine="ebbctl simulate --place", place={
                          "runs": runs, "seeds": p.more["seeds"],
                          "traces": sorted({job.traces for job in p.more["jobs"]})})
