# SPDX-License-Identifier: GPL-2.0-or-later
"""report.html: one page that needs nothing but a browser; drawn from a run's recorded files."""
from html import escape

from . import figure, words_engine, words_slices
from .broker import words as words_broker
from .memory import words as words_memory
from .rebalance import words as words_rebalance
from .common import CPU_EVENTS
from .memory.verdict import MEM_EVENTS

TITLES = {
    "spot": "Three databases share one server",
    "scale": "One database grows to the whole server and back",
    "memory": words_memory.TITLE,
    "broker": words_broker.TITLE,
    "rebalance": words_rebalance.TITLE,
    **words_slices.TITLES,
    **words_engine.TITLES,
}
LEADS = {
    "spot": "VMs join and leave {host}. Under the {policy} policy each running VM gets an equal "
            "share of the cores: CPUs leave one database VM and come to another while both execute "
            "transactions. Paper: section 4.2, figure 6.",
    "scale": "One VM starts with {startup} CPU on {host}, takes one more every {dwell:g} s until "
             "it holds them all, and gives them back one by one, while its engine executes "
             "transactions. Paper: section 4.1, figure 3.",
    "memory": words_memory.LEAD,
    "broker": words_broker.LEAD,
    "rebalance": words_rebalance.LEAD,
    **words_slices.LEADS,
    **words_engine.LEADS,
}
ABLATED_LEADS = {
    "spot": "The same VMs on {host}, each with the CPUs that a fixed division of the cores gives "
            "it: static allocation, for comparison with the run in which CPUs move.",
    "scale": "The same VM on {host}, with the CPUs that it starts with and no more: static "
             "allocation, for comparison with the run in which it grows and shrinks.",
    "memory": words_memory.ABLATED_LEAD,
    "broker": words_broker.ABLATED_LEAD,
    "rebalance": words_rebalance.ABLATED_LEAD,
    **words_slices.ABLATED_LEADS,
    **words_engine.ABLATED_LEADS,
}
ABLATIONS = {"memory": words_memory.ABLATION, "broker": words_broker.ABLATION,
             "rebalance": words_rebalance.ABLATION,
             **words_engine.ABLATIONS, **words_slices.ABLATIONS}
STYLE = """
:root { color-scheme: light }
* { box-sizing: border-box }
body { margin: 0; background: #f3f5f7; color: #1c2733;
  font: 15px/1.5 system-ui, "Segoe UI", "DejaVu Sans", sans-serif }
main { max-width: 1120px; margin: 0 auto; padding: 32px 24px 48px }
h1 { font-size: 30px; line-height: 1.2; margin: 0 0 6px; letter-spacing: -.01em }
h2 { font-size: 18px; margin: 32px 0 10px }
.lead { max-width: 860px; color: #45515e; margin: 0 0 18px }
.tag { display: inline-block; padding: 2px 10px; border-radius: 11px; font-size: 13px;
  font-weight: 600; background: #e2e7ec; color: #33404d; margin: 0 6px 10px 0 }
.pass { background: #d5efe5; color: #00563e } .fail { background: #fbdcc8; color: #8a3000 }
.ablate, .judged { background: #fff0c9; color: #6b4a00 }
.card { background: #fff; border: 1px solid #dfe4e9; border-radius: 10px; padding: 18px }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(165px, 1fr)); gap: 12px;
  margin: 0 0 18px }
.tile { background: #fff; border: 1px solid #dfe4e9; border-radius: 10px; padding: 12px 16px }
.tile b { display: block; font-size: 24px; line-height: 1.25; font-variant-numeric: tabular-nums }
.tile span { color: #5b6876; font-size: 13px }
table { border-collapse: collapse; width: 100% }
th, td { text-align: left; padding: 6px 10px; border-bottom: 1px solid #e7ebef;
  vertical-align: top } tr:last-child td { border-bottom: 0 }
th { font-size: 13px; color: #5b6876; font-weight: 600; white-space: nowrap }
td.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap }
th.n { text-align: right }
td.w { white-space: nowrap } code { font: 13px "DejaVu Sans Mono", monospace }
.bad td { background: #fdeee5 } .soft { color: #5b6876 }
.events { max-height: 560px; overflow: auto; padding: 0 } .events th { position: sticky; top: 0;
  background: #fff } .events td { font-size: 14px }
.dot { display: inline-block; width: 9px; height: 9px; border-radius: 50%; margin-right: 7px }
@media print { body { background: #fff } .events { max-height: none } }
"""


def render(run, samples, events, summary):
    host = _host_words(run["host"])
    leads = ABLATED_LEADS if run["ablate"] else LEADS
    lead = leads[run["scenario"]].format(host=host, policy=run["policy"], dwell=run["dwell_s"],
                                         startup=run["startup_cpus"])
    parts = ["<!doctype html>", '<html lang="en"><head><meta charset="utf-8">',
             '<meta name="viewport" content="width=device-width, initial-scale=1">',
             f"<title>Ebb: {escape(run['scenario'])}</title><style>{STYLE}</style></head>",
             "<body><main>", f"<h1>{escape(TITLES[run['scenario']])}</h1>",
             f'<p class="lead">{escape(lead)}</p>', _tags(run, summary), _tiles(summary),
             f'<div class="card">{figure.draw(run, samples, summary)}'
             f'<p class="soft" style="margin:8px 0 0">{_caption(run)}</p></div>']
    if run["scenario"] == "broker":
        parts.append(words_broker.table(summary))
    if run["scenario"] == "rebalance":
        parts.append(words_rebalance.table(summary))
    if run["ablate"]:
        parts.append(_ablation(summary))
    parts += [_checks(summary), _paper(summary), _events(run, events), _details(run, summary),
              "</main></body></html>"]
    return "\n".join(parts) + "\n"


def _host_words(host):
    if host["sockets"] == 1:
        what = f"one socket with {host['cores']} cores"
    else:
        what = f"{host['sockets']} sockets with {host['cores'] // host['sockets']} cores each"
    if host["threads"] > 1:
        what += f" of {host['threads']} threads"
    return f"an emulated server of {what}" if host["emulated"] else f"a server of {what}"


def _caption(run):
    if run["scenario"] in words_slices.SCENARIOS:
        return escape(words_slices.caption(run))
    if run["scenario"] == "broker":
        return escape(words_broker.caption(run))
    if run["scenario"] == "rebalance":
        return escape(words_rebalance.caption(run))
    text = "Throughput: transactions committed in the second before, ten times a second."
    if run["host"]["emulated"]:
        text += f" Emulated host: a core is {run['host']['share']:g} of a real CPU, so shapes " \
                "and ratios mean something, absolute throughput does not."
    return escape(text)


def _tags(run, summary):
    tags = [(summary["verdict"], f"verdict: {summary['verdict']}")]
    if run["ablate"]:
        tags.append(("ablate", f"ablation: {ABLATIONS.get(run['scenario'], 'static allocation')}"))
    if run["host"]["emulated"]:
        tags.append(("", f"emulated host {run['host']['spec'].partition(':')[2]}"))
    tags.append(("", {"tcg": "TCG, no KVM", "kvm": "KVM", "none": "no VM"}[run["accelerator"]]))
    tags.append(("", f"seed {run['seed']}"))
    return "".join(f'<span class="tag {c}">{escape(t)}</span>' for c, t in tags)


def _tiles(summary):
    tiles = []
    if summary["scenario"] == "memory":
        return _tile_row(words_memory.tiles(summary))
    if summary["scenario"] == "rebalance":
        return _tile_row(words_rebalance.tiles(summary))
    if summary["scenario"] == "broker":
        return _tile_row(words_broker.tiles(summary))
    if summary["scenario"] in words_engine.SCENARIOS:
        return _tile_row(words_engine.tiles(summary))
    if summary["scenario"] in words_slices.SCENARIOS:
        return _tile_row(words_slices.tiles(summary))
    if summary["scenario"] == "spot":
        equal = summary["share_convergence_ms"]
        tiles.append((words_memory.ms(equal["median"]) if equal["n"] else "never",
                      "until shares are equal after a join, median"))
    else:
        tiles.append((_check_value(summary, "plateau_error_pct", " %"),
                      "furthest plateau from proportional"))
    tiles += [(words_memory.ms(summary["cpu_add_ms"]["median"]), "to add a CPU, median"),
              (words_memory.ms(summary["cpu_remove_ms"]["median"]), "to remove a CPU, median"),
              (_count(summary["committed_transactions"]), "transactions committed"),
              (_count(summary["failed_transactions"]), "transactions failed"),
              (_count(summary["lost_updates"]), "updates lost")]
    return _tile_row(tiles)


def _tile_row(tiles):
    return '<div class="tiles">' + "".join(
        f'<div class="tile"><b>{escape(value)}</b><span>{escape(text)}</span></div>'
        for value, text in tiles) + "</div>"


def _count(value):
    return "unknown" if value is None else f"{value:,}"


def _check_value(summary, name, unit):
    value = next((c["value"] for c in summary["checks"] if c["name"] == name), None)
    return "not measured" if value is None else f"{value:g}{unit}"


def _ablation(summary):
    if summary["scenario"] == "memory":
        return ('<h2>What it costs to have no anti-caching</h2><div class="card">' +
                escape(words_memory.cost(summary)) + " The checks below are the same as for a run "
                "with it, and are expected to fail here.</div>")
    if summary["scenario"] == "rebalance":
        return ('<h2>What it costs to stay</h2><div class="card">' +
                escape(words_rebalance.cost(summary)) + " The checks below are the same as for a "
                "run with rebalancing, and are expected to fail here.</div>")
    if summary["scenario"] == "broker":
        return ('<h2>What it costs not to ask</h2><div class="card">' +
                escape(words_broker.cost(summary)) + " The checks below are the same as for a run "
                "with it, and are expected to fail here.</div>")
    if summary["scenario"] in words_engine.SCENARIOS:
        return ('<h2>What it costs to do without</h2><div class="card">' +
                escape(words_engine.cost(summary)) + " The checks below are the same as for a run "
                "with it, and are expected to fail here.</div>")
    if summary["scenario"] in words_slices.SCENARIOS:
        return ('<h2>Without the mechanism</h2><div class="card">' +
                escape(words_slices.ablation(summary)) + "</div>")
    idle = summary.get("idle_core_pct")
    cost = "" if idle is None else f" It left {idle:g} % of the host's core time unused."
    return ('<h2>What static allocation costs</h2><div class="card">Every VM kept the CPUs it '
            'booted with; nothing was offered and nothing moved.' + escape(cost) +
            " The checks below are the same as for a run with the mechanism on, and are "
            "expected to fail here.</div>")


def _checks(summary):
    rows = []
    for c in summary["checks"]:
        value = measured(c)
        rows.append(f'<tr class="{"" if c["ok"] else "bad"}"><td class="w">'
                    f'{"pass" if c["ok"] else "<b>FAIL</b>"}</td>'
                    f'<td class="w"><code>{escape(c["name"])}</code></td>'
                    f'<td class="n">{escape(value)}</td><td class="w">{escape(c["bound"])}</td>'
                    f'<td class="soft">{escape(c.get("text", ""))}</td></tr>')
    return ('<h2>Checks</h2><div class="card"><table><tr><th></th><th>check</th>'
            '<th class="n">measured</th><th>bound</th><th>what is compared</th></tr>' +
            "".join(rows) + "</table></div>")


def measured(check):
    """The value of a check in words."""
    if check["value"] is None:
        return "never" if check["name"].startswith("shares_equal") else "not measured"
    return f"{check['value']:,g} {check['unit']}"


def _paper(summary):
    rows = "".join(f"<tr><td>{escape(r['what'])}</td><td>{escape(r['paper'])}</td>"
                   f"<td>{escape(r['ours'])}</td><td class=\"soft\">{escape(r['where'])}</td></tr>"
                   for r in summary["paper"])
    return ('<h2>Beside the paper</h2><div class="card"><table><tr><th></th><th>paper</th>'
            f'<th>this run</th><th>section</th></tr>{rows}</table></div>')


def _events(run, events):
    rows = []
    for e in sorted(events + _steps(run), key=lambda e: e.t_s):
        what = e.event
        if e.event in CPU_EVENTS and e.cpus:
            what += f" {e.cpus} CPU{'s' if e.cpus != 1 else ''}"
        is_memory = e.event in MEM_EVENTS or e.event == "broker"
        if is_memory:
            what += f" {e.bytes / (1 << 20):,.0f} MiB"
        if e.node is not None and e.node >= 0 and (e.cpus or is_memory):
            what += f", node {e.node}"
        took = "" if e.total_ms is None else f"{e.total_ms:.1f} ms"
        phases = ", ".join(f"{name} {ms:.1f}" for name, ms in e.phases_ms.items()
                           if ms is not None)
        rows.append(f'<tr><td class="n">{e.t_s:.2f}</td><td class="w">{_who(run, e.vm)}</td>'
                    f'<td class="w">{escape(what)}</td>'
                    f'<td class="n" title="{escape(phases)}">{took}</td>'
                    f'<td>{escape(e.reason)}</td></tr>')
    return (f'<h2>Control flow</h2><p class="soft">{len(rows)} events: who, what, how long it '
            'took, and why, from the agent\'s history; rows of the scenario itself are marked '
            'as such.</p><div class="card events"><table><tr><th class="n">t [s]</th>'
            '<th>who</th><th>what</th><th class="n">took</th><th>why</th></tr>' +
            "".join(rows) + "</table></div>")


def _steps(run):
    from .schema import Event
    return [Event(s["t_s"], s["vm"], f"scenario: {s['action']}", reason=s.get("detail", ""))
            for s in run["steps"]]


def _who(run, vm):
    if vm not in run["vms"]:
        return escape(vm or "host")
    colour = figure.chart.COLOURS[run["vms"].index(vm) % len(figure.chart.COLOURS)]
    return f'<span class="dot" style="background:{colour}"></span>{escape(vm)}'


def _details(run, summary):
    rows = [("started", run["started_at"]), ("lasted", f"{run['duration_s']:.0f} s"),
            ("host", run["host"]["spec"]), ("real CPUs", run["host"]["real_cpus"]),
            ("policy", run["policy"]), ("engine", run.get("engine", "")),
            ("CPUs taken by force", summary["forced_cpus"]),
            ("agent's CPU time, % of a core", _count(summary.get("agent_core_pct")))]
    rows += sorted(run["versions"].items())
    return '<h2>Run</h2><div class="card"><table>' + "".join(
        f"<tr><th>{escape(str(k))}</th><td>{escape(str(v))}</td></tr>"
        for k, v in rows if v != "") + "</table></div>"
