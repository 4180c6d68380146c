# SPDX-License-Identifier: GPL-2.0-or-later
"""Words that the reports of several scenarios share."""


def check(summary, name):
    """The value of a check; None: there is no such check, or it was not measured."""
    return next((c["value"] for c in summary["checks"] if c["name"] == name), None)


def value(number, unit="", digits=0):
    return "not measured" if number is None else f"{number:,.{digits}f}{unit}"


def percent(summary, name, digits=0):
    """The value of a check that is per cent."""
    return value(check(summary, name), " %", digits)


def count(number):
    return "unknown" if number is None else f"{number:,}"


def ms(number):
    if number is None:
        return "not measured"
    if number >= 1000:
        return f"{number / 1000:.2f} s"
    return f"{number:.0f} ms" if number >= 10 else f"{number:.2f} ms"


def us(number):
    """Of a time in microseconds."""
    return "not measured" if number is None else ms(number / 1000)


def distribution(d):
    """Of times in milliseconds."""
    if d["median"] is None:
        return "not measured"
    return f"{d['median']:.0f} ms median, {d['p95']:.0f} ms p95, n = {d['n']}"


def outcome(summary):
    """How every closing line ends: failed transactions, lost updates."""
    failed, lost = (("an unknown number of" if n is None else str(n)) for n in (
        summary["failed_transactions"], summary["lost_updates"]))
    return f"{failed} transactions failed, {lost} updates lost."


def cores(host):
    return f"{host['cores']} {'emulated ' if host['emulated'] else ''}cores"


def cpu_tiles(summary):
    """[(value, what it is)] of what matters wherever CPUs are plugged."""
    return [(ms(summary["cpu_add_ms"]["median"]), "to add a CPU, median"),
            (ms(summary["cpu_remove_ms"]["median"]), "to remove a CPU, median"),
            (count(summary["committed_transactions"]), "transactions committed"),
            (count(summary["failed_transactions"]), "transactions failed"),
            (count(summary["lost_updates"]), "updates lost")]


def on_emulated_host(run, what):
    """Why absolute throughput is not to be compared. what: what may be."""
    return f" Emulated host: a core is {run['host']['share']:g} of a real CPU, so {what} mean " \
           "something, absolute throughput does not."


def row(what, paper, ours, where):
    """A row of the table beside the paper; where: its section and figure."""
    return {"what": what, "paper": paper, "ours": ours, "where": where}


def table(title, head, rows, has_numbers=False):
    """A table below the figure, as HTML; has_numbers: all columns but the first."""
    def line(tag, cells):
        number = ' class="n"' if has_numbers else ""
        return "<tr>" + "".join(f"<{tag}{number if i else ''}>{cell}</{tag}>"
                                for i, cell in enumerate(cells)) + "</tr>"
    return f'<h2>{title}</h2><div class="card"><table>{line("th", head)}' + "".join(
        line("td", cells) for cells in rows) + "</table></div>"


def and_cost(sentence, cost):
    """For saw_ablated: a sentence, and what being without the mechanism cost."""
    return lambda summary: [sentence, cost(summary)]


def caption(run):
    text = "Throughput: transactions committed in the second before, ten times a second."
    if run["host"]["emulated"]:
        text += on_emulated_host(run, "shapes and ratios")
    return text


def cost_of_static_allocation(summary):
    text = "Every VM kept the CPUs it booted with; nothing was offered and nothing moved."
    if summary.get("idle_core_pct") is not None:
        text += f" It left {summary['idle_core_pct']:g} % of the host's core time unused."
    return text


def saw_static_allocation(summary):
    failed = summary["failed_transactions"]
    return ["You saw VMs with static allocation: each kept the CPUs it booted with.",
            f"{summary['idle_core_pct']} % of the host's core time was left unused; "
            f"{'an unknown number of' if failed is None else failed} transactions failed."]


def give_tiles(summary):
    """[(value, what it is)] of what matters wherever an engine takes CPUs and gives them back."""
    return [(ms(summary["cpu_add_ms"]["median"]), "to add a CPU, median"),
            (ms(summary["cpu_remove_ms"]["median"]), "to give one back, median"),
            (count(summary["failed_transactions"]), "transactions failed"),
            (count(summary["lost_updates"]), "updates lost")]
