# SPDX-License-Identifier: GPL-2.0-or-later
"""A cluster in a file: ebb-placed of each host, a made-up ebbd beside it, and crm_simulate."""
import fcntl
import json
import os
import re
import shutil
import socket
import subprocess
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAMS = os.path.join(HERE, "..", "..", "build", "gcc", "bin")
TOOLS = ("attrd_updater", "cibadmin", "crm_attribute", "crm_mon", "crm_node", "crm_resource",
         "crm_simulate")
PATIENCE_S = 120
NEVER = -1000000
# Amounts of a host of the rig.
CPUS = 4
MEMORY_MIB = 4096

CIB = """<cib crm_feature_set="3.16.1" validate-with="pacemaker-3.9" epoch="1" num_updates="0"
 admin_epoch="1" have-quorum="1" dc-uuid="1">
 <configuration>
  <crm_config><cluster_property_set id="o">
   <nvpair id="o1" name="stonith-enabled" value="false"/>
   <nvpair id="o2" name="placement-strategy" value="utilization"/>
  </cluster_property_set></crm_config>
  <nodes>{nodes}</nodes><resources>{resources}</resources><constraints/>
 </configuration>
 <status>{states}</status>
</cib>
"""
RESOURCE = """<primitive id="{vm}" class="ocf" provider="heartbeat" type="VirtualDomain">
 <instance_attributes id="{vm}-i"><nvpair id="{vm}-c" name="config" value="/vms/{vm}.xml"/>
 </instance_attributes>
 <operations><op id="{vm}-m" name="monitor" interval="10s" timeout="30s"/></operations>
 <meta_attributes id="{vm}-ma"><nvpair id="{vm}-am" name="allow-migrate" value="true"/>
 </meta_attributes></primitive>"""
STATE = """<node_state id="{id}" uname="{host}" in_ccm="true" crmd="online" join="member"
 expected="member"/>"""


class Ebbd:
    """Answers as ebbd does; `vms` is what runs on its host, `use` what each of them uses."""

    def __init__(self, path):
        self.path, self.vms, self.libvirt, self.answers = path, {}, "up", True
        self.quorum, self.clients = [], []
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(path)
        self.socket.listen()
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                client, _ = self.socket.accept()
            except OSError:
                return
            self.clients.append(client)
            threading.Thread(target=self.talk, args=(client,), daemon=True).start()

    def start_again(self):
        """As one that is started again: those who were connected have to connect anew."""
        for client in self.clients:
            try:
                client.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass    # it has gone
        self.clients = []

    def talk(self, client):
        with client, client.makefile("rwb") as stream:
            for line in stream:
                if not self.answers:
                    return
                request = json.loads(line)
                try:
                    stream.write(json.dumps({"ok": True, **self.answer(request)}).encode() +
                                 b"\n")
                    stream.flush()
                except OSError:
                    return

    def answer(self, request):
        if request["cmd"] == "host":
            return {"host": {"libvirt": self.libvirt, "loaded": True, "nodes": [
                {"node": 0, "capacity": CPUS, "mem_capacity_bytes": MEMORY_MIB << 20}]}}
        if request["cmd"] == "vms":
            return {"vms": [self.vm(name, **vm) for name, vm in dict(self.vms).items()]}
        # Believed for a while, or a host whose placer has died would grow for ever.
        assert request["for_s"] == 65, request
        self.quorum.append(request["quorum"])
        return {"quorum": request["quorum"]}

    @staticmethod
    def vm(name, cpu=200, memory=256, floor_cpus=1, floor_memory=256, move="", vm_class="spot",
           disk=0):
        return {"name": name, "state": "running", "class": vm_class, "shared": False,
                "nodes": [{"floor": floor_cpus, "reserved": floor_cpus}],
                "cpus_held": max(floor_cpus, -(-cpu // 1000)), "mem_held_bytes": memory << 20,
                "mem_floor_bytes": floor_memory << 20, "promised_mem_mib": 0,
                "disk_bytes": disk << 20,
                "telemetry": {"cpu_permille": cpu},
                "move": {"vm": name, "text": move} if move else None}


class Cluster:
    def __init__(self, vms, hosts=("h1", "h2", "h3")):
        self.folder = tempfile.mkdtemp(prefix="placed-")
        self.hosts, self.vms = hosts, {vm: {} for vm in vms}
        self.cib = os.path.join(self.folder, "cib.xml")
        self.ebbds, self.placers, self.down = {}, {}, set()
        self.slow_s = 0         # attrd takes so long to set an attribute
        self.flood = ""         # "yes": attrd tells more facts than anybody reads
        os.mkdir(os.path.join(self.folder, "bin"))
        for tool in TOOLS:
            os.symlink(os.path.join(HERE, "tool"), os.path.join(self.folder, "bin", tool))
        self.write(CIB.format(
            nodes="".join(f'<node id="{i + 1}" uname="{h}"/>' for i, h in enumerate(hosts)),
            resources="".join(RESOURCE.format(vm=vm) for vm in vms),
            states="".join(STATE.format(id=i + 1, host=h) for i, h in enumerate(hosts))))
        for host in hosts:
            os.mkdir(os.path.join(self.folder, host))
            self.ebbds[host] = Ebbd(os.path.join(self.folder, host, "ebbd.sock"))

    def close(self):
        for host in list(self.placers):
            self.stop_placer(host)
        for ebbd in self.ebbds.values():
            ebbd.socket.close()
        shutil.rmtree(self.folder)

    # ---- programs ----

    def env(self, host):
        return {**os.environ, "CIB_file": self.cib, "EBB_NODE": host, "EBB_RIG": self.folder,
                "EBB_SLOW_S": str(self.slow_s), "EBB_FLOOD": self.flood,
                "PATH": os.path.join(self.folder, "bin") + ":" + os.environ["PATH"]}

    def tool(self, *argv):
        return subprocess.run([os.path.join(self.folder, "bin", argv[0]), *argv[1:]], check=True,
                              env=self.env("none"), capture_output=True, text=True).stdout

    def options(self, host):
        own = os.path.join(self.folder, host)
        all_options = {"ebbd_socket": own + "/ebbd.sock", "run_dir": own + "/run",
                       "traces_dir": self.folder + "/traces", "interval_ms": 500,
                       "dampen_s": 0, "move_s": 10, "record": "no"}
        return [x for key, value in all_options.items() for x in ("-o", f"{key}={value}")]

    def start_placer(self, host, *more):
        with open(os.path.join(self.folder, host, "log"), "ab") as log:
            self.placers[host] = subprocess.Popen(
                [os.path.join(PROGRAMS, "ebb-placed"), "-c", "/dev/null", *self.options(host),
                 *more], env=self.env(host), stderr=log)

    def stop_placer(self, host):
        self.placers[host].terminate()
        self.placers.pop(host).wait(PATIENCE_S)

    def start_placers(self):
        for host in self.hosts:
            self.start_placer(host)

    def log(self, host):
        with open(os.path.join(self.folder, host, "log"), encoding="utf-8") as f:
            return f.read()

    # ---- the CIB ----

    def write(self, text):
        with open(self.cib + ".new", "w", encoding="utf-8") as f:
            f.write(text)
        os.rename(self.cib + ".new", self.cib)

    def change(self, fn):
        """Changes the text of the CIB while no tool works on it."""
        lock = os.path.join(self.folder, "lock")
        with open(lock, "a", encoding="utf-8") as f:
            fcntl.flock(f, fcntl.LOCK_EX)
            with open(self.cib, encoding="utf-8") as cib:
                text = cib.read()
            self.write(fn(text))

    def constrain(self, xml):
        self.tool("cibadmin", "--create", "-o", "constraints", "--xml-text", xml)

    def stickiness(self, vm):
        m = re.search(rf'id="{vm}-[^"]*" name="resource-stickiness" value="([^"]*)"',
                      self.tool("cibadmin", "-Q"))
        return m.group(1) if m else None

    def facts(self, host):
        with open(os.path.join(self.folder, "attrd", "ebb-facts", host), encoding="utf-8") as f:
            return json.load(f)

    def set_domains(self, **domains):
        """The fault domain of hosts, as an operator gives it."""
        for host, domain in domains.items():
            self.tool("crm_attribute", "-N", host, "-n", "ebb-fault-domain", "-v", domain)

    def write_scores(self, scores):
        """By hand, {VM: {host: score}}, with the rules and the facts that placers would give."""
        def written(text):
            for i, host in enumerate(self.hosts):
                pairs = "".join(f'<nvpair id="{host}-{vm}" name="ebb-score-{vm}" '
                                f'value="{its[host]}"/>' for vm, its in scores.items())
                state = STATE.format(id=i + 1, host=host)
                text = text.replace(state, state[:-2] + f'><transient_attributes id="{i + 1}">'
                                    f'<instance_attributes id="status-{i + 1}">{pairs}'
                                    "</instance_attributes></transient_attributes></node_state>")
            for vm in scores:
                text = text.replace(f'<meta_attributes id="{vm}-ma">',
                                    f'<meta_attributes id="{vm}-ma"><nvpair id="{vm}-st" '
                                    'name="resource-stickiness" value="50"/>')
            return text.replace("<constraints/>", "<constraints>" + "".join(
                f'<rsc_location id="ebb-score-{vm}" rsc="{vm}"><rule id="{vm}-r" '
                f'score-attribute="ebb-score-{vm}"><expression id="{vm}-e" '
                f'attribute="ebb-score-{vm}" operation="defined"/></rule></rsc_location>'
                for vm in scores) + "</constraints>")
        self.change(written)
        folder = os.path.join(self.folder, "attrd", "ebb-facts")
        os.makedirs(folder)
        for host in self.hosts:
            with open(os.path.join(folder, host), "w", encoding="utf-8") as f:
                json.dump({"v": 1, "cap": [1000 * CPUS, MEMORY_MIB, 0], "ready": True,
                           "moving": "", "vms": {}}, f)

    def place(self, *options):
        """What ebbctl place answers now: {VM: its plan}."""
        done = subprocess.run(
            [os.path.join(PROGRAMS, "ebbctl"), "place", "--json", "--traces",
             os.path.join(self.folder, "traces"), "--steps", "2000", *options],
            check=True, env=self.env("none"), capture_output=True, text=True)
        return {vm["vm"]: vm for vm in json.loads(done.stdout)["vms"]}

    def set_quorum(self, has):
        self.change(lambda text: re.sub(r'have-quorum="[01]"', f'have-quorum="{int(has)}"', text))

    def scores(self, vm):
        """Scores that stand, by host."""
        text = self.tool("crm_mon", "-1", "--output-as=xml", "--include=attributes")
        found = {}
        for host, body in re.findall(r'<node name="(\w+)">(.*?)</node>', text, re.S):
            m = re.search(rf'<attribute name="ebb-score-{re.escape(vm)}" value="([^"]*)"', body)
            if m and m.group(1):
                found[host] = NEVER if m.group(1) == "-INFINITY" else int(m.group(1))
        return found

    def where(self):
        """{VM: host}, of those that run."""
        text = self.tool("crm_mon", "-1", "--output-as=xml", "--include=resources")
        return dict(re.findall(r'<resource id="([^"]+)"[^>]*nodes_running_on="1">\s*'
                               r'<node name="(\w+)"', text))

    # ---- time ----

    def simulate(self, *options):
        """Lets Pacemaker act; returns its words. Then each ebbd has the VMs of its host."""
        out = os.path.join(self.folder, "out.xml")
        said = self.tool("crm_simulate", "-x", self.cib, "-S", "-O", out, *options)
        with open(out, encoding="utf-8") as f:
            text = f.read()
        self.change(lambda _: text)
        where = self.where()
        for host, ebbd in self.ebbds.items():
            ebbd.vms = {vm: self.vms[vm] for vm, h in where.items() if h == host}
        return said

    def power_off(self, host):
        """The host dies with all that runs on it, and with its attributes."""
        if host in self.placers:
            self.stop_placer(host)
        self.ebbds[host].answers = False
        facts = os.path.join(self.folder, "attrd", "ebb-facts", host)
        if os.path.exists(facts):
            os.unlink(facts)
        return self.simulate("--node-down", host)

    def wait(self, what, fn):
        """Until fn() is true; the rig has no other clock than that of ebb-placed."""
        end = time.monotonic() + PATIENCE_S
        while not fn():
            if time.monotonic() > end:
                logs = "\n".join(f"{h}:\n{self.log(h)[-2000:]}" for h in self.hosts
                                 if os.path.exists(os.path.join(self.folder, h, "log")))
                raise AssertionError(f"{what}: not after {PATIENCE_S} s\n{logs}")
            time.sleep(0.1)

    def settle(self):
        """All VMs run, and each has 1000 on its host and a number on every other one."""
        self.wait("scores of VMs that run nowhere", lambda: all(
            len(self.scores(vm)) == len(self.hosts) - len(self.down) for vm in self.vms))
        self.simulate()
        where = self.where()
        self.wait("scores of VMs at home", lambda: all(
            self.scores(vm).get(where[vm]) == 1000 for vm in self.vms))
        return where
