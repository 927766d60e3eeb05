"""A compute host on libvirt that changes hands: its agent is ours or the peer's, configuration and guests stay."""

from __future__ import annotations

import base64
import dataclasses
import json
import os
import re
import socket
import subprocess
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import libvirt
from tests.interop.domain_lines import lines
from tests.interop.libvirt_modules import libvirt_for_others
from tests.interop.mixed import Host, Mixed, Side
from tests.interop.mixed_cloud import PATIENCE, PLACEMENT, Cloud

from kilonova.cloud.commands import TOOLS
from kilonova.cloud.daemons import Daemon, Supervisor
from kilonova.cloud.rest import patient, poll
from kilonova.cloud.services.kilonova_conf import PRIVILEGED
from kilonova.cloud.services.libvirt import Libvirt
from kilonova.cloud.services.ovn import Ovn
from kilonova.cloud.site import Site

BOOT_PATIENCE = 300.0
MEMORY_OF_THE_MOMENT = ("total", "max_unit")
"""A kernel that sets its memory up as it needs it has more at each look."""
OF_THE_MOMENT = ("updated_at", "uptime", "memory_mb", "free_ram_mb", "disk_available_least")
UNEQUAL_TRAITS = {
    # What our agent cannot do yet.
    "COMPUTE_ACCELERATORS",
    "COMPUTE_NET_ATTACH_INTERFACE",
    "COMPUTE_NET_ATTACH_INTERFACE_WITH_TAG",
    "COMPUTE_RESCUE_BFV",
    "COMPUTE_SOCKET_PCI_NUMA_AFFINITY",
    "COMPUTE_STORAGE_VIRTIO_FS",
    "COMPUTE_TRUSTED_CERTS",
    "COMPUTE_VOLUME_ATTACH_WITH_TAG",
    "COMPUTE_VOLUME_EXTEND",
    # The peer looks for another name than libvirt's.
    "HW_CPU_X86_SSE3",
}
COUNTED = re.compile(rb"count ([0-9a-f-]{36}) (\d+)\r?\n")
COUNTER = """#!/bin/sh
cat >/etc/counter <<'END'
#!/bin/sh
export PATH=/bin
read -r boot </proc/sys/kernel/random/boot_id
n=0
while :; do n=$((n + 1)); echo "count $boot $n" >/dev/console; sleep 1; done
END
chmod 755 /etc/counter
echo '::respawn:/etc/counter' >>/etc/inittab
kill -HUP 1
"""
"""User data of a guest that counts its seconds on its serial console, from every boot on."""


class LibvirtHost(Mixed):
    """One cell and one compute host; `side` is whose agent it begins with."""

    def __init__(self, site: Site, supervisor: Supervisor, control: Side, side: Side) -> None:
        super().__init__(site, supervisor, control, [Host(site.host, side)])

    @property
    def agent(self) -> str:
        return f"nova-compute-{self.site.host}"

    @property
    def instances(self) -> Path:
        return self.data / self.site.host / "instances"

    def shared(self) -> dict[str, dict[str, Any]]:
        """privsep's helper is found on the path: everything else of the configuration is the same for both sides."""
        helper = {"helper_command": f"privsep-helper --config-file {self.conf}"}
        sections = super().shared() | dict.fromkeys(PRIVILEGED, helper)
        sections.setdefault("DEFAULT", {})["update_resources_interval"] = 10
        return sections

    def program(
        self, name: str, program: str, files: Sequence[Path], ready: Callable[[], bool] | None = None
    ) -> Daemon:
        daemon = super().program(name, program, files, ready)
        if name != self.agent:
            return daemon
        side = self.members[self.site.host].side
        env = {"PATH": f"{self.programs(side)}:{os.environ.get('PATH', '')}:{TOOLS}"}
        if side == "theirs":
            env["PYTHONPATH"] = str(libvirt_for_others(self.data / "modules"))
        return dataclasses.replace(daemon, env={**daemon.env, **env})

    def hand_over(self, side: Side) -> None:
        """Stop the agent and start the other side's."""
        host = self.site.host
        self.supervisor.stop(self.agent)
        self.members[host] = dataclasses.replace(self.members[host], side=side)
        self.start()


class Hypervisor:
    """The host as one sees it beside the API: processes, files, consoles, ports on the switch."""

    LARGE = "large"
    """A flavor with every kind of local disk."""

    def __init__(self, cloud: Cloud, service: LibvirtHost) -> None:
        self.cloud, self.service = cloud, service
        self.site = service.site
        self.libvirt = Libvirt(self.site, service.supervisor)
        self.ovn = Ovn(self.site, service.supervisor)

    def register_flavor(self) -> None:
        flavor = {"id": self.LARGE, "name": self.LARGE, "ram": 192, "vcpus": 1, "disk": 1, "swap": 64}
        self.cloud.admin.post(self.cloud.url("/flavors"), {"flavor": flavor | {"OS-FLV-EXT-DATA:ephemeral": 1}})

    def clear(self) -> None:
        """What a test that failed has left."""
        left = self.cloud.get("/servers?all_tenants=1")["servers"]
        self.cloud.delete(*(one["id"] for one in left))

    @property
    def cache(self) -> Path:
        return self.service.instances / "_base"

    # Guests

    def build(self, name: str, flavor: str = "1") -> str:
        """A server whose guest counts."""
        user_data = base64.b64encode(COUNTER.encode()).decode()
        return self.cloud.create(name, flavorRef=flavor, config_drive=True, user_data=user_data)

    def name(self, server: str) -> str:
        return str(self.cloud.show(server)["OS-EXT-SRV-ATTR:instance_name"])

    def pid(self, server: str) -> int | None:
        """Of the guest's QEMU, by the file that libvirt keeps."""
        try:
            return int((self.libvirt.data / "run" / "qemu" / f"{self.name(server)}.pid").read_text())
        except FileNotFoundError:
            return None

    def domains(self) -> dict[str, str]:
        """XML of each domain that is defined, by uuid."""
        connection = libvirt.open(self.libvirt.uri)
        try:
            return {
                one.UUIDString(): one.XMLDesc(libvirt.VIR_DOMAIN_XML_INACTIVE) for one in connection.listAllDomains()
            }
        finally:
            connection.close()

    def folder(self, server: str) -> Path:
        return self.service.instances / server

    def count(self, server: str) -> tuple[str, int]:
        """(boot, seconds counted in it) as the guest printed last; ("", 0) when it has not yet."""
        found = COUNTED.findall((self.folder(server) / "console.log").read_bytes())
        return (found[-1][0].decode(), int(found[-1][1])) if found else ("", 0)

    def counts_in_new_boot(self, server: str, before: str = "") -> str:
        """The boot in which the guest counts, which is not `before`."""
        what = f"{server} does not count: {self.tail(server)}"
        poll(what, lambda: self.count(server)[0] not in ("", before), BOOT_PATIENCE)
        return self.count(server)[0]

    def counts_on(self, server: str, boot: str) -> None:
        now = self.count(server)
        assert now[0] == boot
        poll(f"{server} stands still", lambda: self.count(server) > now, PATIENCE)
        assert self.count(server)[0] == boot

    def tail(self, server: str) -> str:
        file = self.folder(server) / "console.log"
        return file.read_bytes()[-400:].decode(errors="replace") if file.exists() else "no console"

    def reachable(self, server: str) -> bool:
        """Whether its ssh answers on its port's address."""
        address = self.cloud.show(server)["addresses"]["private"][0]["addr"]
        try:
            with socket.create_connection((address, 22), 5):
                return True
        except OSError:
            return False

    def taps(self) -> set[str]:
        """Guests' ports on the switch: its own are internal ones or patches."""
        find = ["--bare", "--columns=name", "find", "Interface"]
        return set(self.ovn.vsctl(*find, 'type=""').split())

    # The host

    def reports(self) -> int:
        [row] = self.cloud.rows(
            "SELECT report_count FROM services WHERE host = :host AND `binary` = 'nova-compute' AND deleted = 0",
            host=self.site.host,
        )
        return int(row["report_count"])

    def give_to(self, side: Side) -> None:
        """The agent of that side works, and says so."""
        self.service.hand_over(side)
        seen = self.reports()
        poll("the host says nothing", patient(lambda: self.reports() > seen), BOOT_PATIENCE)
        assert self.cloud.services()[self.site.host]["state"] == "up"

    def provider(self) -> dict[str, Any]:
        """What Placement knows of the host."""
        base = self.site.url("placement")
        client = self.cloud.admin
        [found] = client.get(f"{base}/resource_providers?name={self.site.host}", **PLACEMENT)["resource_providers"]
        own = f"{base}/resource_providers/{found['uuid']}"
        return {
            "uuid": found["uuid"],
            "inventories": {
                kind: without(one, *(MEMORY_OF_THE_MOMENT if kind == "MEMORY_MB" else ()))
                for kind, one in client.get(f"{own}/inventories", **PLACEMENT)["inventories"].items()
            },
            "traits": dict.fromkeys(set(client.get(f"{own}/traits", **PLACEMENT)["traits"]) - UNEQUAL_TRAITS, "there"),
            "usages": client.get(f"{own}/usages", **PLACEMENT)["usages"],
            "aggregates": client.get(f"{own}/aggregates", **PLACEMENT)["aggregates"],
        }

    def node(self) -> dict[str, Any]:
        """The host's record, without what is different at every look."""
        row = self.cloud.node(self.site.host)
        processor = json.loads(row["cpu_info"])
        parsed = {
            "cpu_info": processor | {"features": sorted(processor["features"])},
            "stats": without(json.loads(row["stats"]), "uptime"),
            "supported_instances": sorted(json.loads(row["supported_instances"])),
        }
        return without(row | parsed, *OF_THE_MOMENT, "numa_topology")

    def has_counted(self) -> bool:
        """Whether the host's record says how many guests are in which state; both agents count once in a while."""
        states = {"ACTIVE": "num_vm_active", "SHUTOFF": "num_vm_stopped"}
        shown = self.cloud.get("/servers/detail?all_tenants=1")["servers"]
        actual = Counter(states[one["status"]] for one in shown) | Counter({"num_task_None": len(shown)})
        stats = json.loads(self.cloud.node(self.site.host)["stats"])
        return (
            Counter({name: int(n) for name, n in stats.items() if name.startswith(("num_vm_", "num_task_"))}) == actual
        )

    def sight(self, servers: Iterable[str]) -> dict[str, Any]:
        """Everything that is the same whoever's agent runs."""
        return {
            "provider": self.provider(),
            "node": self.node(),
            "servers": {server: self.sight_of(server) for server in servers},
            "taps": self.taps(),
        }

    def sight_of(self, server: str) -> dict[str, Any]:
        cloud = self.cloud
        return {
            "pid": self.pid(server),
            "domain": self.domains()[server],
            "row": without(cloud.instance(server), "updated_at"),
            "claims": cloud.claims(server),
            "ports": [(port["binding:host_id"], port["status"], port["fixed_ips"]) for port in cloud.ports(server)],
            "files": files(self.folder(server)),
            "recorded": (self.folder(server) / "disk.info").read_text(),
        }


def without(row: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in names}


def differences(before: Any, after: Any, where: str = "") -> dict[str, tuple[Any, Any]]:
    """What changed, by the path to it."""
    if not (isinstance(before, dict) and isinstance(after, dict)):
        return {} if before == after else {where: (before, after)}
    found = {}
    for name in before.keys() | after.keys():
        found |= differences(before.get(name), after.get(name), f"{where}/{name}")
    return found


def files(folder: Path) -> dict[str, tuple[str, int, int]]:
    """(mode, owner, inode) of each file by name."""
    found = {path.name: path.stat() for path in folder.iterdir()}
    return {name: (oct(stat.st_mode), stat.st_uid, stat.st_ino) for name, stat in found.items()}


def layout(host: Hypervisor, server: str) -> dict[str, Any]:
    """How a guest lies on the host and what its domain says, without what is its own: numbers, addresses, times."""
    folder = host.folder(server)
    # The peer notes the config drive's format only when it opens it again.
    formats = without(json.loads((folder / "disk.info").read_text()), str(folder / "disk.config"))
    return {
        "files": {name: (mode, owner) for name, (mode, owner, _) in files(folder).items()},
        "formats": {Path(path).name: format for path, format in formats.items()},
        "disks": {Path(path).name: described(Path(path)) for path in formats},
        "cache": {path.name: oct(path.stat().st_mode) for path in host.cache.iterdir()},
        "domain": sorted(neutral(host, server)),
    }


def described(disk: Path) -> dict[str, Any]:
    """What the head of a disk says."""
    argv = ["qemu-img", "info", "--force-share", "--output=json", str(disk)]
    found = json.loads(subprocess.run(argv, check=True, capture_output=True).stdout)
    names = ("format", "virtual-size", "backing-filename", "backing-filename-format", "cluster-size")
    return {name: found.get(name) for name in names}


def neutral(host: Hypervisor, server: str) -> Iterator[str]:
    """The lines of a domain, with the same words for what every guest has of its own."""
    [port] = host.cloud.ports(server)
    own = {
        server: "SERVER",
        host.name(server): "NAME",
        port["id"]: "PORT",
        port["id"][:11]: "PORT",
        port["mac_address"]: "MAC",
        port["fixed_ips"][0]["ip_address"]: "ADDRESS",
    }
    for line in lines(ET.fromstring(host.domains()[server])):
        for word, stand_in in own.items():
            line = line.replace(word, stand_in)
        yield line
