# SPDX-License-Identifier: GPL-2.0-or-later
"""The numbers of the paper, each beside ours.

"A system design for elastically scaling transaction processing engines in virtualized servers",
PVLDB 13(12). Their servers had 16 to 80 cores under KVM; ratios and latencies compare, absolute
throughput does not.
"""

from . import words_engine, words_slices
from .broker import words as words_broker
from .rebalance import words as words_rebalance
from .memory import words as words_memory

HARDWARE = "Xeon servers with 2, 4 and 8 sockets, KVM"


def beside(summary):
    """[{what, paper, ours, where}] for the table in the report."""
    rows = []
    if summary["scenario"] in words_slices.SCENARIOS:
        # No CPU moves in these.
        return words_slices.paper(summary) + [_hardware_row(summary)]
    if summary["scenario"] == "spot":
        rows.append({"what": "VMs, cores shared", "paper": "3 VMs, 2 sockets of 18 cores",
                     "ours": _host(summary), "where": "4.2"})
        rows.append({"what": "Shares equal after a join, median", "paper": "about 1 s (figure 6)",
                     "ours": _ms(summary["share_convergence_ms"]), "where": "4.2, figure 6"})
    elif summary["scenario"] == "memory":
        rows += words_memory.paper(summary)
    elif summary["scenario"] == "rebalance":
        return words_rebalance.paper(summary) + [_hardware_row(summary)]
    elif summary["scenario"] == "broker":
        # Nothing is said of CPUs, which stay where they are.
        return words_broker.paper(summary) + [_hardware_row(summary)]
    elif summary["scenario"] in words_engine.SCENARIOS:
        rows += words_engine.paper(summary)
    else:
        rows.append({"what": "Growth", "paper": "1 to 16 CPUs, one every 5 s (2 sockets)",
                     "ours": _growth(summary), "where": "4.1, figure 3"})
        rows.append({"what": "Throughput against CPUs held",
                     "paper": "rises and falls symmetrically",
                     "ours": _value(summary, "plateau_error_pct", "% from proportional at most") +
                     ", " + _value(summary, "symmetry_pct", "% between up and down"),
                     "where": "4.1, figure 3"})
    for what, name, paper in (("Adding a CPU", "cpu_add_ms", "20-30 ms, average"),
                              ("Removing a CPU", "cpu_remove_ms", "30-50 ms, average")):
        rows.append({"what": what + ", request to answer of the agent", "paper": paper,
                     "ours": _ms(summary[name]), "where": "4.1"})
        rows.append({"what": what + ", as the engine sees it", "paper": "",
                     "ours": _engines(summary, name), "where": ""})
    return rows + [_hardware_row(summary)]


def _hardware_row(summary):
    return {"what": "Hardware", "paper": HARDWARE, "ours": _hardware(summary), "where": "4"}


def _ms(d):
    if d["median"] is None:
        return "not measured"
    return f"{d['median']:.0f} ms median, {d['p95']:.0f} ms p95, n = {d['n']}"


def _engines(summary, name):
    seen = [(vm, e[name]) for vm, e in summary["engines"].items() if e and name in e]
    return "; ".join(f"{vm} {d['median']:.0f} ms median, n = {d['n']}" for vm, d in seen
                     if d["n"]) or "not measured"


def _value(summary, name, unit):
    value = next((c["value"] for c in summary["checks"] if c["name"] == name), None)
    return "not measured" if value is None else f"{value:.1f} {unit}"


def _host(summary):
    vms = next((c["value"] for c in summary["checks"] if c["name"] == "vms_joined"), None)
    host = summary["host"]
    return f"{vms} VMs, {host['sockets']} {_emulated(host)}sockets of " \
           f"{host['cores'] // host['sockets']} cores"


def _growth(summary):
    sizes = [p["cpus"] for p in summary.get("plateaus", [])]
    return f"{min(sizes)} to {max(sizes)} CPUs" if sizes else "not measured"


def _emulated(host):
    return "emulated " if host["emulated"] else ""


def _hardware(summary):
    host = summary["host"]
    if not host["emulated"]:
        how = summary["accelerator"].upper() if summary["accelerator"] != "none" else "no VM"
        return f"{host['cores']} cores, {how}"
    return f"emulated: {host['cores']} cores of {host['share']:g} CPU each on " \
           f"{host['real_cpus']} real CPUs, {summary['accelerator'].upper()}"
