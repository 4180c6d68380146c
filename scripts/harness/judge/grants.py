# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether the agents of several hosts, taken together, have granted anything twice."""


def doubled(agents):
    """Texts, one for each thing that was granted twice. agents: {host: the VMs that its agent told
    of (docs/control-protocol.md, request vms)}; a host whose agent does not answer is missing."""
    found, holders = [], {}
    for host, vms in agents.items():
        owners = {}
        for vm in vms:
            if vm["state"] != "running":
                continue
            holders.setdefault(vm["name"], []).append(host)
            for vcpu in vm["vcpus"]:
                if vcpu["core"] is not None and not vm["shared"]:
                    owners.setdefault(vcpu["core"], []).append(vm["name"])
        found += [f"core {core} of {host}: {' and '.join(names)}"
                  for core, names in owners.items() if len(names) > 1]
    return found + [f"{name} holds CPUs and memory on {' and '.join(hosts)}"
                    for name, hosts in holders.items() if len(hosts) > 1]
