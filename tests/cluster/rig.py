# SPDX-License-Identifier: GPL-2.0-or-later
"""A cluster lab for tests, with VMs that serve clients."""
import os
import time

from harness.judge import grants
from harness.lab.cluster import Cluster
from harness.lab.domain import Cell, Vm
from harness.lab.lab import BUILD

PORT = 6379
MEMORY_MIB = 192


def lab(log_name):
    """Not the folder of scripts/cluster-lab: someone may use that one by hand."""
    return Cluster(os.path.join(BUILD, "cluster-test"),
                   os.path.join(BUILD, "failed", "cluster-" + log_name))


def server_vm(name, number, **more):
    """A VM whose oltp-server keeps nothing over a restart."""
    return Vm(name, [Cell(2, 1, 0)], MEMORY_MIB, address=f"10.77.0.{10 + number}/24", tier="lend",
              plug="ahead", options={
                  "name": name, "shell": "ttyS1",
                  "server": f"--listen 0.0.0.0:{PORT} --quiet --keys 20000"}, **more)


def doubled(cluster):
    """What was granted twice, looked at twice: between two agents' answers a VM may move."""
    first = set(grants.doubled(cluster.grants()))
    return first & set(grants.doubled(cluster.grants())) if first else first


def ping(cluster, vm, patience_s):
    """Until a VM's server answers. TimeoutError: it does not."""
    end_at = time.monotonic() + patience_s
    while True:
        try:
            with cluster.connect((vm.address.partition("/")[0], PORT)) as s:
                s.settimeout(patience_s)
                s.sendall(b"PING\r\n")
                if s.recv(16) == b"+PONG\r\n":
                    return
        except OSError as e:
            if time.monotonic() > end_at:
                raise TimeoutError(f"{vm.name} does not serve: {e}") from None
        time.sleep(0.1)
