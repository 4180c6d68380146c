# SPDX-License-Identifier: GPL-2.0-or-later
"""What report and closing words say of `spot`."""
from harness.report import wording
from harness.report.wording import check, distribution, ms, row

from ..scenario import Words

LEAD = ("VMs join and leave {host}. Under the {policy} policy each running VM gets an equal share "
        "of the cores: CPUs leave one database VM and come to another while both execute "
        "transactions. Paper: section 4.2, figure 6.")
ABLATED_LEAD = ("The same VMs on {host}, each with the CPUs that a fixed division of the cores "
                "gives it: static allocation, for comparison with the run in which CPUs move.")


def tiles(summary):
    equal = summary["share_convergence_ms"]
    return [(ms(equal["median"]) if equal["n"] else "never",
             "until shares are equal after a join, median")] + wording.cpu_tiles(summary)


def saw(summary):
    took = summary["share_convergence_ms"]["median"]
    within = "an unknown time" if took is None else f"{took:.0f} ms"
    return ["You saw three database VMs join and leave a server of "
            f"{wording.cores(summary['host'])}, its CPUs moving between them while they ran.",
            f"After a join shares were equal within {within} (medians); "
            f"{wording.outcome(summary)}"]


def paper(summary):
    host = summary["host"]
    return [row("VMs, cores shared", "3 VMs, 2 sockets of 18 cores",
                f"{check(summary, 'vms_joined')} VMs, {host['sockets']} "
                f"{'emulated ' if host['emulated'] else ''}sockets of "
                f"{host['cores'] // host['sockets']} cores", "4.2"),
            row("Shares equal after a join, median", "about 1 s (figure 6)",
                distribution(summary["share_convergence_ms"]), "4.2, figure 6")]


WORDS = Words(title="Three databases share one server", lead=LEAD, ablated_lead=ABLATED_LEAD,
              tiles=tiles, saw=saw, paper=paper)
