"""Open vSwitch and OVN in user space, with databases, sockets and bridges of their own.

The datapath is `netdev`: no kernel module is needed. The machine's own Open vSwitch, if there is one, is not touched.
"""

from __future__ import annotations

import errno
import fcntl
import json
import struct
import sys
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kilonova.cloud import addresses, probes
from kilonova.cloud.commands import ok, run
from kilonova.cloud.daemons import Daemon
from kilonova.cloud.errors import CloudError
from kilonova.cloud.rest import poll
from kilonova.cloud.services.service import Service
from kilonova.cloud.site import LOOPBACK

SCHEMAS = {
    "ovs": Path("/usr/share/openvswitch/vswitch.ovsschema"),
    "nb": Path("/usr/share/ovn/ovn-nb.ovsschema"),
    "sb": Path("/usr/share/ovn/ovn-sb.ovsschema"),
}

TUNSETIFF, IFF_TAP, IFF_NO_PI = 0x400454CA, 0x0002, 0x1000
"""Of linux/if_tun.h."""


class Ovn(Service):
    name = "ovn"
    set_up_needs = ("packages",)

    @property
    def sockets(self) -> Path:
        return self.site.run / "ovn"

    def socket(self, database: str) -> Path:
        """Socket of a database server: `ovs`, `nb` or `sb`. The first keeps the name that its tools expect."""
        return self.sockets / ("db.sock" if database == "ovs" else f"{database}.sock")

    @property
    def plan(self) -> addresses.Plan:
        return addresses.plan(self.site.settings.number)

    @property
    def environment(self) -> dict[str, str]:
        """With it the tools, and libvirt, talk to this Open vSwitch and not to the machine's."""
        return {"OVS_RUNDIR": str(self.sockets), "OVN_RUNDIR": str(self.sockets), "OVS_LOGDIR": str(self.site.log)}

    def set_up(self) -> None:
        self.data.mkdir(parents=True, exist_ok=True)
        for name, schema in SCHEMAS.items():
            file = self.data / f"{name}.db"
            if not file.exists():
                run(["ovsdb-tool", "create", file, schema], self.set_up_log)
        system = self.data / "system-id"
        if not system.exists():
            system.write_text(str(uuid.uuid4()))

    def start(self) -> None:
        if not self.supervisor.pid("ovs-vswitchd") and datapath_taken():
            raise CloudError(
                "another Open vSwitch on this machine forwards in user space, and there can be one only; "
                "stop it (or the other cloud), or use --driver fake"
            )
        self.sockets.mkdir(parents=True, exist_ok=True)
        for name in SCHEMAS:
            self.supervisor.start(self.database_server(name))
        self.describe_host()
        for daemon in (self.northd(), self.switch()):
            self.supervisor.start(daemon)
        self.external_bridge()
        self.supervisor.start(self.controller())
        self.announce_bridge()
        self.host_side()
        self.supervisor.start(self.metadata_proxy())

    def daemons(self) -> list[Daemon]:
        servers = [self.database_server(name) for name in SCHEMAS]
        return [*servers, self.northd(), self.switch(), self.controller(), self.metadata_proxy()]

    def database_server(self, name: str) -> Daemon:
        argv = [
            "ovsdb-server",
            self.data / f"{name}.db",
            f"--remote=punix:{self.socket(name)}",
            f"--unixctl={self.sockets / name}.ctl",
            f"--log-file={self.site.log / f'ovsdb-{name}.log'}",
            "-vconsole:off",
        ]
        return Daemon(f"ovsdb-{name}", argv, self.environment, probes.ovsdb(self.socket(name)))

    def northd(self) -> Daemon:
        argv = [
            "ovn-northd",
            f"--ovnnb-db=unix:{self.socket('nb')}",
            f"--ovnsb-db=unix:{self.socket('sb')}",
            f"--unixctl={self.sockets / 'northd.ctl'}",
            f"--log-file={self.site.log / 'ovn-northd.log'}",
            "-vconsole:off",
        ]
        return Daemon("ovn-northd", argv, self.environment, probes.unixctl(self.sockets / "northd.ctl"))

    def switch(self) -> Daemon:
        argv = [
            "ovs-vswitchd",
            f"unix:{self.socket('ovs')}",
            f"--unixctl={self.sockets / 'vswitchd.ctl'}",
            f"--log-file={self.site.log / 'ovs-vswitchd.log'}",
            "-vconsole:off",
        ]
        ready = probes.unixctl(self.sockets / "vswitchd.ctl")
        return Daemon("ovs-vswitchd", argv, self.environment, ready)

    def controller(self) -> Daemon:
        argv = [
            "ovn-controller",
            f"unix:{self.socket('ovs')}",
            f"--log-file={self.site.log / 'ovn-controller.log'}",
            "-vconsole:off",
        ]
        return Daemon("ovn-controller", argv, self.environment, self.chassis_registered, self.controller_answers)

    def controller_answers(self) -> bool:
        """Its control socket has a name of its own choice."""
        return probes.unixctl(self.sockets / f"ovn-controller.{self.supervisor.pid('ovn-controller')}.ctl")()

    def metadata_proxy(self) -> Daemon:
        argv = [
            sys.executable,
            "-m",
            "kilonova.cloud.metadata_proxy",
            f"--southbound={self.socket('sb')}",
            f"--ovs-run-dir={self.sockets}",
            f"--bridge={self.plan.integration}",
            f"--metadata={self.site.url('metadata')}",
            f"--prefix=kn{self.site.settings.number}",
            f"--control={self.sockets / 'metadata.ctl'}",
        ]
        secret = {"METADATA_PROXY_SECRET": self.site.password("metadata")}
        ready = probes.says(self.sockets / "metadata.ctl", b"", b"networks")
        return Daemon("metadata-proxy", argv, secret, ready)

    def vsctl(self, *words: object) -> str:
        command = ["ovs-vsctl", "--timeout=30", f"--db=unix:{self.socket('ovs')}"]
        return run([*command, *words], self.set_up_log, self.environment)

    def sbctl(self, *words: object) -> str:
        command = ["ovn-sbctl", "--timeout=30", f"--db=unix:{self.socket('sb')}"]
        return run([*command, *words], None, self.environment)

    @property
    def system_id(self) -> str:
        return (self.data / "system-id").read_text()

    def describe_host(self) -> None:
        """Tell ovn-controller who it is, before the switch runs."""
        settings = {
            "system-id": self.system_id,
            "hostname": self.site.host,
            "ovn-remote": f"unix:{self.socket('sb')}",
            "ovn-encap-type": "geneve",
            "ovn-encap-ip": LOOPBACK,
            "ovn-bridge": self.plan.integration,
            "ovn-bridge-datapath-type": "netdev",
            "ovn-bridge-mappings": f"public:{self.plan.external}",
            "ovn-cms-options": "enable-chassis-as-gw",
            "ovn-monitor-all": "true",
        }
        words = [f'external_ids:{key}="{value}"' for key, value in settings.items()]
        self.vsctl("--no-wait", "--", "init", "--", "set", "Open_vSwitch", ".", *words)

    def external_bridge(self) -> None:
        bridge = self.plan.external
        self.vsctl("--may-exist", "add-br", bridge, "--", "set", "Bridge", bridge, "datapath_type=netdev")

    def chassis_registered(self) -> bool:
        query = [
            "ovn-sbctl",
            "--timeout=5",
            f"--db=unix:{self.socket('sb')}",
            "get",
            "Chassis_Private",
            self.system_id,
            "name",
        ]
        bridge = ["ovs-vsctl", "--timeout=5", f"--db=unix:{self.socket('ovs')}", "br-exists", self.plan.integration]
        return ok(query, env=self.environment) and ok(bridge, env=self.environment)

    def announce_bridge(self) -> None:
        """Neutron tells compute hosts the bridge that the chassis names here."""
        word = f'external_ids:neutron\\:ovn-bridge="{self.plan.integration}"'
        self.sbctl("set", "Chassis_Private", self.system_id, word)

    def host_side(self) -> None:
        """Address by which this machine reaches routers and floating addresses."""
        bridge, plan = self.plan.external, self.plan
        poll(f"device {bridge}", lambda: ok(["ip", "link", "show", bridge]), 30, 0.1)
        run(["ip", "addr", "replace", f"{plan.host_address}/24", "dev", bridge], self.set_up_log)
        run(["ip", "link", "set", bridge, "up"], self.set_up_log)
        # Packets of guests come by this bridge, answers to them go by the host's own port: no strict check of the way.
        run(["sysctl", "-q", "-w", f"net.ipv4.conf.{bridge}.rp_filter=2"], self.set_up_log, check=False)

    def plug_host(self, port: Mapping[str, Any]) -> None:
        """Give this machine that port of Neutron on the guests' network. Repeated at every start."""
        device, prefix = self.plan.host_device, self.plan.private.split("/")[1]
        options = ["type=internal", f"external_ids:iface-id={port['id']}", f"mtu_request={port['mtu']}"]
        add = ["--may-exist", "add-port", self.plan.integration, device]
        self.vsctl(*add, "--", "set", "Interface", device, *options)
        poll(f"device {device}", lambda: ok(["ip", "link", "show", device]), 30, 0.1)
        run(["ip", "link", "set", device, "address", port["mac_address"]], self.set_up_log)
        address = f"{port['fixed_ips'][0]['ip_address']}/{prefix}"
        run(["ip", "addr", "replace", address, "dev", device], self.set_up_log)
        run(["ip", "link", "set", device, "up"], self.set_up_log)

    def devices(self) -> list[str]:
        """What this switch has plugged in, read from its database's file: it need not run, nor have ended well."""
        file = self.data / "ovs.db"
        if not file.exists():
            return []
        query = ["Open_vSwitch", {"op": "select", "table": "Interface", "where": [], "columns": ["name"]}]
        said = run(["ovsdb-tool", "query", file, json.dumps(query)], self.set_up_log, check=False)
        try:
            return [row["name"] for result in json.loads(said) for row in result["rows"]]
        except (ValueError, KeyError, TypeError):
            return []

    def clean(self, devices: Sequence[str]) -> None:
        """After the daemons have ended: devices and namespaces that they leave."""
        namespaces = json.loads(run(["ip", "-json", "netns", "list"], check=False) or "[]")
        for namespace in namespaces:
            if namespace["name"].startswith(f"kn{self.site.settings.number}-"):
                run(["ip", "netns", "del", namespace["name"]], check=False)
        # Every Open vSwitch in user space has this one; it goes when ours was the last.
        shared = () if datapath_taken() else ("ovs-netdev",)
        for device in (*devices, self.plan.integration, self.plan.external, *shared):
            run(["ip", "link", "del", device], check=False)


def datapath_taken(device: str = "ovs-netdev") -> bool:
    """Whether a switch holds the one device on which every datapath in user space stands. Needs root.

    The device outlives its switch; only attaching to it tells whether somebody still has it.
    """
    if not Path("/sys/class/net", device).exists():
        return False
    request = struct.pack("16sH22x", device.encode(), IFF_TAP | IFF_NO_PI)
    with open("/dev/net/tun", "rb+", buffering=0) as tun:
        try:
            fcntl.ioctl(tun, TUNSETIFF, request)
        except OSError as error:
            return error.errno == errno.EBUSY
    return False
