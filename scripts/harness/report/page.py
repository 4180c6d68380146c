# SPDX-License-Identifier: GPL-2.0-or-later
"""report.html: one page that needs nothing but a browser; drawn from a run's recorded files."""
from html import escape

from harness.draw import chart
from harness.judge.checks import BROKER_EVENT, CPU_EVENTS, MEM_EVENTS
from harness.record.schema import Event

from . import ledger
from .wording import count

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
.card { background: #fff; border: 1px solid #dfe4e9; border-radius: 10px; padding: 18px;
  overflow-x: auto }
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


def render(scenario, run, samples, events, summary):
    words = scenario.words
    lead = words.ablated_lead if run["ablate"] else words.lead
    lead = lead.format(host=_host_words(run["host"]), policy=run["policy"], dwell=run["dwell_s"],
                       startup=run["startup_cpus"])
    parts = ["<!doctype html>", '<html lang="en"><head><meta charset="utf-8">',
             '<meta name="viewport" content="width=device-width, initial-scale=1">',
             f"<title>Ebb: {escape(scenario.name)}</title><style>{STYLE}</style></head>",
             "<body><main>", f"<h1>{escape(words.title)}</h1>",
             f'<p class="lead">{escape(lead)}</p>', _tags(run, summary, words),
             _tiles(words.tiles(summary)),
             f'<div class="card">{scenario.draw(run, samples, summary)}'
             f'<p class="soft" style="margin:8px 0 0">{escape(words.caption(run))}</p></div>']
    table = words.table(summary)
    if table:
        parts.append(table)
    if run["ablate"]:
        parts.append(_ablation(summary, words))
    if "ledger" in run:
        parts.append(ledger.section(run["ledger"]))
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


def _tags(run, summary, words):
    tags = [(summary["verdict"], f"verdict: {summary['verdict']}")]
    if run["ablate"]:
        tags.append(("ablate", f"ablation: {words.ablation}"))
    if run["host"]["emulated"]:
        tags.append(("", f"emulated host {run['host']['spec'].partition(':')[2]}"))
    tags.append(("", {"tcg": "TCG, no KVM", "kvm": "KVM", "none": "no VM"}[run["accelerator"]]))
    tags.append(("", f"seed {run['seed']}"))
    return "".join(f'<span class="tag {c}">{escape(t)}</span>' for c, t in tags)


def _tiles(tiles):
    return '<div class="tiles">' + "".join(
        f'<div class="tile"><b>{escape(value)}</b><span>{escape(text)}</span></div>'
        for value, text in tiles) + "</div>"


def _ablation(summary, words):
    return (f'<h2>{words.cost_title}</h2><div class="card">{escape(words.cost(summary))} The '
            "checks below are the same as for a run with the mechanism on, and are expected to "
            "fail here.</div>")


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
        is_memory = e.event in (*MEM_EVENTS, BROKER_EVENT)
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
    return [Event(s["t_s"], s["vm"], f"scenario: {s['action']}", reason=s.get("detail", ""))
            for s in run["steps"]]


def _who(run, vm):
    if vm not in run["vms"]:
        return escape(vm or "host")
    colour = chart.COLOURS[run["vms"].index(vm) % len(chart.COLOURS)]
    return f'<span class="dot" style="background:{colour}"></span>{escape(vm)}'


def _details(run, summary):
    rows = [("started", run["started_at"]), ("lasted", f"{run['duration_s']:.0f} s"),
            ("host", run["host"]["spec"]), ("real CPUs", run["host"]["real_cpus"]),
            ("policy", run["policy"]), ("engine", run.get("engine", "")),
            ("CPUs taken by force", summary["forced_cpus"]),
            ("agent's CPU time, % of a core", count(summary.get("agent_core_pct")))]
    rows += sorted(run["versions"].items())
    return '<h2>Run</h2><div class="card"><table>' + "".join(
        f"<tr><th>{escape(str(k))}</th><td>{escape(str(v))}</td></tr>"
        for k, v in rows if v != "") + "</table></div>"
