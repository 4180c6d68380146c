# SPDX-License-Identifier: GPL-2.0-or-later
"""Domain XML of a scenario's VM (docs/domain-metadata.md): direct kernel boot, few devices.

A VM sees one NUMA cell per host node, each with as many vCPUs as it may ever hold there. The
vCPUs of its startup set are enabled from the start; all others are there to be plugged. A cell may
have a pool: a virtio-mem device, empty at the start, whose memory the VM leases to its engines.
"""
import json
import uuid
import xml.etree.ElementTree as ET
from dataclasses import dataclass, field

QEMU_NS = "http://libvirt.org/schemas/domain/qemu/1.0"
EBB_NS = "urn:ebb:sla:1"


@dataclass
class Cell:
    """A NUMA cell of the guest and what the VM may hold there."""
    max_cpus: int
    startup: int = 0
    host_node: int = 0
    pool_mib: int = 0       # size of its pool, a multiple of the block; 0: it has none
    pool_min_mib: int = 0   # the part that the VM may always hold


BLOCK_MIB = 2               # of a pool


@dataclass
class Vm:
    name: str               # as in samples.csv; libvirt knows it with the lab's prefix
    cells: list
    memory_mib: int = 256
    weight: int = 100
    deadline_ms: int = 2000
    mem_weight: int = 100
    mem_deadline_ms: int = 2000
    sla_class: str = "spot"
    tier: str = "any"       # how it gives CPUs back: any, lend, park, unplug
    plug: str = "demand"    # ahead: its vCPUs are plugged before it asks for them
    is_shared: bool = False # its CPUs share cores with those of other VMs
    options: dict = field(default_factory=dict)     # ebb.<key>=<value> for the guest's init
    disks_mib: list = field(default_factory=list)   # sizes of scratch disks vda, vdb, ...
    disks_in_memory: bool = False   # if the host can: what they do does not vary then
    read_iops: int = 0      # that each of them does at most in a second; 0: no limit
    volumes: list = field(default_factory=list)     # of the volume server: disks after these
    address: str = ""       # A.B.C.D/BITS in the lab's network; empty: no network device
    uuid: str = field(default_factory=lambda: str(uuid.uuid4()))

    @property
    def startup_cpus(self):
        return sum(c.startup for c in self.cells)

    @property
    def pools(self):
        """Guest nodes that have a pool."""
        return [i for i, c in enumerate(self.cells) if c.pool_mib]


@dataclass
class Boot:
    """What VMs are made of on this machine."""
    emulator: str
    kernel: str
    initramfs: str
    cmdline: str
    accelerator: str        # "kvm" or "tcg"
    prefix: str             # of domain names
    link_dir: str           # where the agent listens, one socket per VM
    console_dir: str        # serial output and command sockets
    memory_dir: str = ""    # for files in memory that allow O_DIRECT, if there can be any
    volume_socket: str = "" # NBD, of the volume server; empty: there is none
    bridge: str = ""        # of the lab's network; empty: there is none
    command_dir: str = ""   # of command sockets, if it is another folder than that of consoles
    keeps_consoles: bool = False    # a VM that starts again, maybe elsewhere, adds to its console


def console_path(boot, vm):
    return f"{boot.console_dir}/{vm.name}.console"


def command_path(boot, vm):
    return f"{boot.command_dir or boot.console_dir}/{vm.name}.cmd"


def pool_id(node):
    """Of the pool's device, for libvirt and for QEMU."""
    return f"ua-ebb-pool{node}"


def disk_path(boot, vm, i):
    if vm.disks_in_memory and boot.memory_dir:
        return f"{boot.memory_dir}/{boot.prefix}{vm.name}.disk{i}"
    return f"{boot.console_dir}/{vm.name}.disk{i}"


def command_line(boot, vm):
    words = [boot.cmdline]
    options = dict(vm.options, net=vm.address) if vm.address else vm.options
    for key, value in options.items():
        value = str(value)
        words.append(f'ebb.{key}="{value}"' if " " in value else f"ebb.{key}={value}")
    return " ".join(words)


def _sub(parent, tag, text=None, **attributes):
    element = ET.SubElement(parent, tag, {k.rstrip("_").replace("_", "-"): str(v)
                                          for k, v in attributes.items()})
    element.text = text
    return element


def xml(boot, vm):
    """The domain as text for `virsh define`."""
    for prefix, namespace in (("qemu", QEMU_NS), ("ebb", EBB_NS)):
        ET.register_namespace(prefix, namespace)
    root = ET.Element("domain", type="kvm" if boot.accelerator == "kvm" else "qemu")
    _sub(root, "name", boot.prefix + vm.name)
    _sub(root, "uuid", vm.uuid)
    _sub(_sub(root, "metadata"), f"{{{EBB_NS}}}sla").extend(_sla(vm))
    per_cell = vm.memory_mib // len(vm.cells)
    most = per_cell * len(vm.cells) + sum(c.pool_mib for c in vm.cells)
    if vm.pools:
        _sub(root, "maxMemory", str(most), slots=len(vm.pools), unit="MiB")
    _sub(root, "memory", str(most), unit="MiB")
    _cpus(root, boot, vm, per_cell)
    system = _sub(root, "os")
    _sub(system, "type", "hvm", arch="x86_64", machine="pc")
    _sub(system, "kernel", boot.kernel)
    _sub(system, "initrd", boot.initramfs)
    _sub(system, "cmdline", command_line(boot, vm))
    _sub(_sub(root, "features"), "acpi")
    for event in ("on_poweroff", "on_crash"):
        _sub(root, event, "destroy")
    _sub(root, "on_reboot", "restart")
    _devices(root, boot, vm)
    _sub(root, f"{{{QEMU_NS}}}commandline").extend(
        ET.Element(f"{{{QEMU_NS}}}arg", value=value) for value in (
            "-chardev", f"socket,id=ebb0,path={boot.link_dir}/{vm.uuid}.sock,reconnect-ms=200",
            "-device", _control_device(vm)))
    ET.indent(root)
    return ET.tostring(root, encoding="unicode") + "\n"


def _control_device(vm):
    """As JSON: QEMU makes devices given so in their order, which is after those of libvirt, whose
    pools it lists, but all others before. libvirt knows nothing of the slot, hence a late one."""
    device = {"driver": "virtio-ebb-pci", "id": "ebb", "chardev": "ebb0", "addr": "0x1e"}
    if vm.pools:
        device["pools"] = ":".join(pool_id(i) for i in vm.pools)
    return json.dumps(device)


def _sla(vm):
    """The elements of the SLA."""
    cpu = ET.Element(f"{{{EBB_NS}}}cpu", {"class": vm.sla_class, "weight": str(vm.weight),
                                          "deadline-ms": str(vm.deadline_ms), **_lending(vm)})
    for i, cell in enumerate(vm.cells):
        ET.SubElement(cpu, f"{{{EBB_NS}}}node", id=str(i), startup=str(cell.startup),
                      max=str(cell.max_cpus), host=str(cell.host_node))
    if not vm.pools:
        return [cpu]
    memory = ET.Element(f"{{{EBB_NS}}}memory", {"weight": str(vm.mem_weight),
                                                "deadline-ms": str(vm.mem_deadline_ms)})
    for i in vm.pools:
        ET.SubElement(memory, f"{{{EBB_NS}}}node",
                      {"id": str(i), "min-mib": str(vm.cells[i].pool_min_mib),
                       "max-mib": str(vm.cells[i].pool_mib)})
    return [cpu, memory]


def _lending(vm):
    """What the SLA says of it, where that is not the default."""
    said = {"tier": vm.tier, "plug": vm.plug}
    found = {k: v for k, v in said.items() if v not in ("any", "demand")}
    return {**found, "shared": "yes"} if vm.is_shared else found


def _cpus(root, boot, vm, per_cell_mib):
    count = sum(c.max_cpus for c in vm.cells)
    _sub(root, "vcpu", str(count), placement="static", current=vm.startup_cpus)
    vcpus = _sub(root, "vcpus")
    cpu = _sub(root, "cpu", **({"mode": "host-passthrough"} if boot.accelerator == "kvm" else
                               {"mode": "custom", "match": "exact", "check": "none"}))
    if boot.accelerator == "tcg":
        # One whose time stamp counter counts as constant: its CPUs need no calibration.
        _sub(cpu, "model", "Nehalem", fallback="forbid")
    # A socket per cell where they are alike; a socket may not lie in two cells.
    alike = len({c.max_cpus for c in vm.cells}) == 1
    sockets = len(vm.cells) if alike else count
    _sub(cpu, "topology", sockets=sockets, cores=count // sockets, threads=1)
    numa = _sub(cpu, "numa")
    first = 0
    for i, cell in enumerate(vm.cells):
        for n in range(cell.max_cpus):
            starts = n < cell.startup
            _sub(vcpus, "vcpu", id=first + n, enabled="yes" if starts else "no",
                 hotpluggable="no" if starts else "yes")
        _sub(numa, "cell", id=i, cpus=f"{first}-{first + cell.max_cpus - 1}",
             memory=per_cell_mib, unit="MiB")
        first += cell.max_cpus


def _devices(root, boot, vm):
    devices = _sub(root, "devices")
    _sub(devices, "emulator", boot.emulator)
    for i in range(len(vm.disks_mib)):
        _disk(devices, i, disk_path(boot, vm, i), vm.read_iops)
    for i, volume in enumerate(vm.volumes, len(vm.disks_mib)):
        _volume(devices, i, volume, boot.volume_socket)
    if vm.address:
        _interface(devices, boot.bridge)
    _sub(devices, "controller", type="usb", model="none")
    for port, (kind, attributes) in enumerate((
            ("file", {"path": console_path(boot, vm),
                      **({"append": "on"} if boot.keeps_consoles else {})}),
            ("unix", {"mode": "bind", "path": command_path(boot, vm)}))):
        serial = _sub(devices, "serial", type=kind)
        _sub(serial, "source", **attributes)
        _sub(serial, "target", port=port)
    _sub(devices, "memballoon", model="none")
    for i in vm.pools:
        _pool(devices, i, vm.cells[i].pool_mib)


def _disk(devices, i, path, read_iops):
    """A scratch disk: O_DIRECT on the host, or the host's cache would count as the VM's memory."""
    disk = _sub(devices, "disk", type="file", device="disk")
    _sub(disk, "driver", name="qemu", type="raw", cache="none", io="threads", discard="unmap")
    _sub(disk, "source", file=path)
    _target(disk, i)
    if read_iops:
        _sub(_sub(disk, "iotune"), "read_iops_sec", str(read_iops))


def _volume(devices, i, volume, socket):
    """A disk of the volume server (ebb-volumed(8)), which any QEMU can have."""
    disk = _sub(devices, "disk", type="network", device="disk")
    _sub(disk, "driver", name="qemu", type="raw", discard="unmap")
    source = _sub(disk, "source", protocol="nbd", name=volume)
    _sub(source, "host", transport="unix", socket=socket)
    _target(disk, i)


def _target(disk, i):
    _sub(disk, "target", dev=f"vd{chr(ord('a') + i)}", bus="virtio")


def _interface(devices, bridge):
    """virtio-net on a bridge. By QEMU itself: the lab needs no vhost module; and without a boot
    ROM, which not every QEMU has beside it."""
    interface = _sub(devices, "interface", type="bridge")
    _sub(interface, "source", bridge=bridge)
    _sub(interface, "model", type="virtio")
    _sub(interface, "driver", name="qemu")
    _sub(interface, "rom", enabled="no")


def _pool(devices, node, size_mib):
    pool = _sub(devices, "memory", model="virtio-mem")
    target = _sub(pool, "target")
    _sub(target, "size", str(size_mib * 1024), unit="KiB")
    _sub(target, "node", str(node))
    _sub(target, "block", str(BLOCK_MIB * 1024), unit="KiB")
    _sub(target, "requested", "0", unit="KiB")
    _sub(pool, "alias", name=pool_id(node))
