# SPDX-License-Identifier: GPL-2.0-or-later
"""The numbers of the paper, each beside ours.

"A system design for elastically scaling transaction processing engines in virtualized servers",
PVLDB 13(12). Their servers had 16 to 80 cores under KVM; ratios and latencies compare, absolute
throughput does not.
"""
from .wording import distribution

HARDWARE = "Xeon servers with 2, 4 and 8 sockets, KVM"


def beside(words, summary):
    """[{what, paper, ours, where}] for the table in the report. words: of the scenario."""
    rows = words.paper(summary)
    if not words.moves_cpus:
        return rows + [_hardware_row(summary)]
    for what, name, paper in (("Adding a CPU", "cpu_add_ms", "20-30 ms, average"),
                              ("Removing a CPU", "cpu_remove_ms", "30-50 ms, average")):
        rows.append({"what": what + ", request to answer of the agent", "paper": paper,
                     "ours": distribution(summary[name]), "where": "4.1"})
        rows.append({"what": what + ", as the engine sees it", "paper": "",
                     "ours": _engines(summary, name), "where": ""})
    return rows + [_hardware_row(summary)]


def _hardware_row(summary):
    return {"what": "Hardware", "paper": HARDWARE, "ours": _hardware(summary), "where": "4"}


def _engines(summary, name):
    seen = [(vm, e[name]) for vm, e in summary["engines"].items() if e and name in e]
    return "; ".join(f"{vm} {d['median']:.0f} ms median, n = {d['n']}" for vm, d in seen
                     if d["n"]) or "not measured"


def _hardware(summary):
    host = summary["host"]
    if not host["emulated"]:
        how = summary["accelerator"].upper() if summary["accelerator"] != "none" else "no VM"
        return f"{host['cores']} cores, {how}"
    return f"emulated: {host['cores']} cores of {host['share']:g} CPU each on " \
           f"{host['real_cpus']} real CPUs, {summary['accelerator'].upper()}"
