# SPDX-License-Identifier: GPL-2.0-or-later
"""What report and closing words say of `failover`."""
from harness.report import wording
from harness.report.wording import row, value

from ..scenario import Words
from .plan import COLD, WARM

LEAD = ("A database in memory on {host} goes to another server at once, twice: with its records "
        "copied ahead while clients use it, and by a server that opens what a killed one has on "
        "disk. Paper: Flexible resource allocation, sections 7 and 8.4, figure 15.")
ABLATED_LEAD = ("The same database on {host}, but nothing is copied ahead: both times the other "
                "server opens what is on disk.")


def caption(run):
    told = run["failover"]
    return (f"Mean response times of Delivery, from the arrival of a request on, in a workload "
            f"like TPC-C with {told['warehouses']} warehouses in memory. Processes on the machine "
            f"itself; what they read of the disk is held to {told['read_mib_s']} MiB/s, as of "
            "storage in a network.")


def _of(summary, name):
    return next(m for m in summary["failovers"] if m["name"] == name)


def _back(m):
    return ("" if m["is_back"] else "more than ") + value(m["back_s"], " s", 1)


def tiles(summary):
    warm, cold = _of(summary, WARM), _of(summary, COLD)
    return [(value(warm["felt_s"], " s", 0), "felt, with the cache"),
            (_back(cold), "until response times were back, without it"),
            (value(warm["pause_ms"], " ms", 1), "writers paused"),
            (value(warm["failed"]), "requests failed, with the cache"),
            (value(summary["lazy"]["first_answer_ms"], " ms", 1),
             "from start to the first transaction on 1 GiB")]


def cost(summary):
    warm = _of(summary, WARM)
    return (f"With nothing copied ahead response times were back after {_back(warm)}; "
            f"{value(warm['failed'])} requests failed.")


def saw(summary):
    warm, cold = _of(summary, WARM), _of(summary, COLD)
    return [f"You saw a failover that was felt for {value(warm['felt_s'], ' s', 0)} with the "
            f"cache, and {_back(cold)} without it; writers paused for "
            f"{value(warm['pause_ms'], ' ms', 1)}.", wording.outcome(summary)]


def saw_ablated(summary):
    return ["You saw two failovers to a cold server.", cost(summary)]


def paper(summary):
    warm, cold = _of(summary, WARM), _of(summary, COLD)
    times = "{} ms before, {} at worst".format
    return [row("Delivery with the cache", "a short increase",
                times(value(warm["steady_ms"], "", 1), value(warm["worst_ms"], "", 1)) +
                f", {value(warm['felt_s'], ' s', 0)}", "8.4, figure 15"),
            row("Delivery without it", "a spike; back after more than 15 minutes",
                times(value(cold["steady_ms"], "", 1), value(cold["worst_ms"], "", 1)) +
                f", back after {_back(cold)}", "8.4, figure 15")]


WORDS = Words(title="A failover keeps its cache", lead=LEAD, ablated_lead=ABLATED_LEAD,
              tiles=tiles, saw=saw, paper=paper, ablation="nothing is copied ahead",
              ablation_help="nothing is copied ahead",
              cost_title="Without copying ahead", cost=cost, saw_ablated=saw_ablated,
              caption=caption, moves_cpus=False)
