"""The compute service itself: one process in profile embedded, one per service and cell in profile full."""

from __future__ import annotations

import concurrent.futures
import contextlib
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from kilonova.cloud import ini, ping
from kilonova.cloud.commands import run, run_each
from kilonova.cloud.daemons import Daemon
from kilonova.cloud.probes import http_answers
from kilonova.cloud.rest import Rest, RestError, patient, poll
from kilonova.cloud.services.image import virt_type
from kilonova.cloud.services.libvirt import Libvirt
from kilonova.cloud.services.ovn import Ovn
from kilonova.cloud.services.service import Service
from kilonova.cloud.site import LOOPBACK, REGION, authtoken, keystone_auth
from kilonova.cloud.steps import Step

FLAVORS = [
    ("1", "c1.tiny", 192, 1, 1),
    ("2", "c1.small", 512, 1, 5),
    ("3", "c1.medium", 1024, 2, 10),
    ("4", "c1.large", 2048, 2, 20),
]
"""(id, name, MiB, vCPUs, GiB). The first is for the guest image."""

NOT_IMPLEMENTED = 501
CONTROLLER = "controller"
"""Server name of conductors and schedulers."""

QUOTAS = {"instances": 100, "cores": 200, "ram": 512000, "key_pairs": 100, "server_groups": 100}
FILTERS = (
    "ComputeFilter",
    "ComputeCapabilitiesFilter",
    "ImagePropertiesFilter",
    "ServerGroupAntiAffinityFilter",
    "ServerGroupAffinityFilter",
)

PRIVILEGED = ("nova_sys_admin", "vif_plug_ovs_privileged", "vif_plug_linux_bridge_privileged", "privsep_osbrick")
"""Sections that name the helper of oslo.privsep. The default is started by sudo, which knows no path of ours."""


Sections = dict[str, dict[str, Any]]


def joined(first: Sections, second: Sections) -> Sections:
    """The sections of both; of an option that both have, the second's."""
    return {name: first.get(name, {}) | second.get(name, {}) for name in (*first, *second)}


class Compute(Service):
    name = "compute"
    set_up_needs = ("packages",)
    data_needs = ("identity", "hosts")

    @property
    def bin(self) -> Path:
        """Where our executables are: beside the Python that runs this."""
        return Path(sys.executable).parent

    @property
    def log(self) -> Path:
        """Where a build that fails says why."""
        return self.site.log / (f"nova-compute-{next(iter(self.hosts()))}.log" if self.site.bus else "kilonova.log")

    @property
    def conf(self) -> Path:
        return self.folder / "nova.conf"

    @property
    def cells(self) -> list[str]:
        return ["cell1", "cell2"] if self.site.full else ["cell1"]

    @property
    def fake(self) -> bool:
        return self.site.settings.driver == "fake"

    def hosts(self) -> dict[str, str]:
        """Cell by host name."""
        if self.fake:
            return {
                f"fake-{n}": self.cells[(n - 1) % len(self.cells)] for n in range(1, self.site.settings.computes + 1)
            }
        return {self.site.host: "cell1"}

    def database_url(self, name: str) -> str:
        if self.site.full:
            return self.site.database(name)
        return f"sqlite:///{self.site.data / 'sqlite' / name}.db"

    # Configuration

    def configure(self) -> None:
        ini.write(self.conf, self.top())
        ini.write(self.privileged_conf, {"DEFAULT": {"log_dir": self.site.log}} | self.devices())
        if self.site.bus:
            for cell in self.cells:
                ini.write(self.cell_conf(cell), self.for_cell(cell))
            for host in self.hosts():
                ini.write(self.host_conf(host), self.for_host(host))

    @property
    def privileged_conf(self) -> Path:
        """What the privileged helpers read: no secret is in it."""
        return self.folder / "privileged.conf"

    def cell_conf(self, cell: str) -> Path:
        return self.folder / f"nova-{cell}.conf"

    def host_conf(self, host: str) -> Path:
        return self.folder / f"host-{host}.conf"

    def top(self) -> Sections:
        """Configuration of everything above the cells; embedded, of the one process."""
        one = not self.site.bus
        sections = joined(self.shared(), self.control()) | {
            "api_database": {"connection": self.database_url("nova_api")},
            "database": {"connection": self.database_url("nova_cell1" if one else "nova_cell0")},
        }
        sections["DEFAULT"]["transport_url"] = self.site.transport("nova")
        if one:
            hosts, driver = list(self.hosts()), self.driver_options()
            sections["DEFAULT"] |= {"host": hosts[0]} | driver["DEFAULT"]
            if len(hosts) > 1:
                sections.setdefault("kilonova", {})["hosts"] = ",".join(hosts)
            sections |= {name: options for name, options in driver.items() if name != "DEFAULT"}
        return sections

    def for_cell(self, cell: str) -> Sections:
        """Of a cell's conductor: its own database and bus, and nothing of those above or beside it."""
        sections = joined(self.shared(), self.control())
        sections["DEFAULT"]["transport_url"] = self.site.transport(f"nova_{cell}")
        return sections | {"database": {"connection": self.database_url(f"nova_{cell}")}}

    def for_host(self, host: str) -> Sections:
        """All that a compute host has: its cell's bus, no database and no secret of the API."""
        state = self.data / host
        (state / "instances").mkdir(parents=True, exist_ok=True)
        sections, driver = self.shared(), self.driver_options()
        sections["DEFAULT"] |= driver["DEFAULT"] | {
            "host": host,
            "state_path": state,
            "instances_path": state / "instances",
            "transport_url": self.site.transport(f"nova_{self.hosts()[host]}"),
        }
        sections["oslo_concurrency"] = {"lock_path": state / "lock"}
        return sections | {name: options for name, options in driver.items() if name != "DEFAULT"}

    def driver_options(self) -> Sections:
        if self.fake:
            return {"DEFAULT": {"compute_driver": self.fake_driver}}
        libvirt = Libvirt(self.site, self.supervisor)
        options: Sections = {
            "DEFAULT": {"compute_driver": "libvirt.LibvirtDriver", "resume_guests_state_on_host_boot": True},
            "libvirt": {
                "virt_type": virt_type(self.site),
                "connection_uri": libvirt.uri,
                "images_type": "qcow2",
                "cpu_mode": "host-passthrough" if virt_type(self.site) == "kvm" else "none",
                # Guests of the translator need little of its cache; the default is 1 GiB for each.
                "tb_cache_size": 32 if virt_type(self.site) == "qemu" else None,
            },
        }
        return options | self.devices()

    def devices(self) -> Sections:
        """Where devices of guests are plugged in."""
        if self.fake or self.site.settings.network != "ovn":
            return {}
        return {"os_vif_ovs": {"ovsdb_connection": f"unix:{Ovn(self.site, self.supervisor).socket('ovs')}"}}

    @property
    def fake_driver(self) -> str:
        return "fake.FakeDriverWithoutFakeNodes" if self.site.peer else "fake.FakeDriver"

    def control(self) -> Sections:
        """What only the control plane has: what it decides by, and secrets that no host needs."""
        sections: Sections = {
            "keystone_authtoken": self.authtoken(),
            "neutron": {
                "service_metadata_proxy": True,
                "metadata_proxy_shared_secret": self.site.password("metadata"),
            },
            "scheduler": {"discover_hosts_in_cells_interval": 30},
            "filter_scheduler": {"enabled_filters": ",".join(FILTERS)},
            "quota": QUOTAS,
        }
        if not self.site.peer:
            # By default the key is made of a database's URL, and that of SQLite is a path that everybody knows.
            sections["kilonova"] = {"flow_seal_keys": self.site.password("seal")}
        return sections

    def shared(self) -> Sections:
        """What every process has."""
        auth = keystone_auth(self.site, "nova")
        region = {"region_name": auth["region_name"]}
        login = {name: value for name, value in auth.items() if name not in region}
        (self.data / "lock").mkdir(parents=True, exist_ok=True)
        (self.data / "instances").mkdir(parents=True, exist_ok=True)
        sections: Sections = {
            "DEFAULT": {
                "my_ip": LOOPBACK,
                "host": CONTROLLER,
                "state_path": self.data,
                "instances_path": self.data / "instances",
                "log_dir": self.site.log,
                "osapi_compute_listen": LOOPBACK,
                "osapi_compute_listen_port": self.site.ports["compute"],
                "metadata_listen": LOOPBACK,
                "metadata_listen_port": self.site.ports["metadata"],
                "report_interval": 10,
                "service_down_time": 60,
            },
            "service_user": login | {"send_service_user_token": True},
            "keystone": auth,
            "placement": auth,
            "glance": region | {"valid_interfaces": "public"},
            "neutron": auth | {"valid_interfaces": "public"},
            "oslo_concurrency": {"lock_path": self.data / "lock"},
            "oslo_messaging_notifications": {"driver": "noop"},
            # A port of VNC knows no password: everybody on this machine could sit down at a guest's console.
            "vnc": {"enabled": False},
        }
        helper = {"helper_command": f"{self.bin / 'privsep-helper'} --config-file {self.privileged_conf}"}
        sections |= dict.fromkeys(PRIVILEGED, helper)
        if self.site.peer:
            sections = joined(sections, self.for_peer())
        if self.site.settings.volumes:
            sections["cinder"] = login | {"catalog_info": "block-storage::publicURL", "os_region_name": REGION}
        elif not self.site.peer:
            sections["kilonova"] = {"reconcile_disabled": "orphan_attachments"}
        return sections

    def for_peer(self) -> Sections:
        """What only Nova obeys."""
        return {
            "wsgi": {"api_paste_config": self.folder / "api-paste.ini"},
            "cache": {"enabled": True, "backend": "oslo_cache.dict"},
            "key_manager": {
                "backend": "nova.keymgr.conf_key_mgr.ConfKeyManager",
                "fixed_key": self.site.derived("volume keys"),
            },
            "scheduler": {"workers": 1},
            "conductor": {"workers": 1},
            "neutron": {"default_floating_pool": "public"},
        }

    def authtoken(self) -> dict[str, Any]:
        """Tokens are remembered in each process: our environment has no client of memcached."""
        section = authtoken(self.site, "nova", "compute")
        section.pop("memcached_servers", None)
        return section

    # Databases and cells

    manage_entry = "kilonova.cmd.manage:main"

    @property
    def python(self) -> Path:
        return self.bin / "python"

    def manage(self, *commands: Sequence[object], conf: Path | None = None) -> str:
        """Commands of nova-manage, one after the other."""
        shared = ["nova-manage", "--config-file", conf or self.conf]
        return run(run_each(self.python, self.manage_entry, shared, *commands), self.set_up_log, self.foreign)

    def set_up(self) -> None:
        """Schemas and cells. Embedded, the process's own database is that of cell1, so cell0 has a file of its own."""
        main = ["db", "sync", "--local_cell"]
        if self.site.bus:
            work: dict[Path, list[list[str]]] = {self.cell_conf(cell): [main] for cell in self.cells}
            work |= {self.conf: [["api_db", "sync"], main], self.cell0_conf(): []}
        else:
            work = {self.conf: [["api_db", "sync"], main], self.cell0_conf(): [main]}
        with concurrent.futures.ThreadPoolExecutor(len(work), "schema") as pool:
            for future in [pool.submit(self.manage, *commands, conf=conf) for conf, commands in work.items()]:
                future.result()
        self.manage(["cell_v2", "map_cell0"], conf=self.above_cells("cell0", self.database_url("nova")))
        known = self.manage(["cell_v2", "list_cells"])
        for cell in [cell for cell in self.cells if f" {cell} " not in known]:
            conf = self.above_cells(cell, self.database_url(f"nova_{cell}"))
            self.manage(["cell_v2", "create_cell", "--name", cell], conf=conf)

    def above_cells(self, cell: str, database: str) -> Path:
        """Configuration of commands about a cell: its URLs stand in a file, since everybody can read arguments."""
        sections = self.top() | {"database": {"connection": database}}
        if self.site.bus:
            sections["DEFAULT"]["transport_url"] = self.site.transport(f"nova_{cell}")
        return ini.write(self.folder / f"setup-{cell}.conf", sections)

    def cell0_conf(self) -> Path:
        sections = self.top() | {"database": {"connection": self.database_url("nova_cell0")}}
        return ini.write(self.folder / "nova-cell0.conf", sections)

    # Processes

    def daemons(self) -> list[Daemon]:
        return [daemon for group in self.groups() for daemon in group]

    def start(self) -> None:
        self.configure()
        for group in self.groups():
            self.supervisor.start(*group)

    def groups(self) -> list[list[Daemon]]:
        """Daemons that may start at once; a group after the one before it."""
        if self.site.bus:
            return [self.conductors(), [*self.agents(), *self.apis()]]
        ready = self.both_answer
        return [[Daemon("kilonova", [self.bin / "kilonova", "serve", "--config-file", self.conf], ready=ready)]]

    def both_answer(self) -> bool:
        return http_answers(self.site.url("compute", "/"))() and http_answers(self.site.url("metadata", "/"))()

    def apis(self) -> list[Daemon]:
        compute, metadata = (http_answers(self.site.url(name, "/")) for name in ("compute", "metadata"))
        return [
            self.program("nova-api", "nova-api", [self.conf], compute),
            self.program("nova-metadata", "nova-metadata-api", [self.conf], metadata),
        ]

    def conductors(self) -> list[Daemon]:
        """Compute hosts talk to their cell's conductor as soon as they start."""
        cells = [
            self.program(f"nova-conductor-{cell}", "nova-conductor", [self.cell_conf(cell)]) for cell in self.cells
        ]
        return [self.program("nova-conductor", "nova-conductor", [self.conf]), *cells]

    def agents(self) -> list[Daemon]:
        hosts = [self.program(f"nova-compute-{host}", "nova-compute", [self.host_conf(host)]) for host in self.hosts()]
        return [self.program("nova-scheduler", "nova-scheduler", [self.conf]), *hosts]

    def program(
        self, name: str, program: str, files: Sequence[Path], ready: Callable[[], bool] | None = None
    ) -> Daemon:
        arguments = [word for file in files for word in ("--config-file", file)]
        log = ["--log-file", self.site.log / f"{name}.log"]
        argv = [self.bin / program, *arguments, *log]
        return Daemon(name, argv, self.foreign, ready or (lambda: self.says_ready(name)), self.pinged(name))

    def pinged(self, name: str) -> Callable[[], bool] | None:
        """The question to a daemon that only the bus reaches."""
        vhost, topic, server = self.on_the_bus().get(name, ("", "", ""))
        return ping.nova(self.site.transport(vhost), topic, server) if vhost else None

    def on_the_bus(self) -> dict[str, tuple[str, str, str]]:
        """Virtual host, topic and server name by daemon."""
        found = {f"nova-{topic}": ("nova", topic, CONTROLLER) for topic in ("conductor", "scheduler")}
        found |= {f"nova-conductor-{cell}": (f"nova_{cell}", "conductor", CONTROLLER) for cell in self.cells}
        return found | {
            f"nova-compute-{host}": (f"nova_{cell}", "compute", host) for host, cell in self.hosts().items()
        }

    def says_ready(self, name: str) -> bool:
        """Whether a process without a port has written that it is ready; its pid stands in the line."""
        mark = f" {self.supervisor.pid(name)} INFO kilonova.cmd.process "
        with contextlib.suppress(OSError), (self.site.log / f"{name}.log").open(errors="replace") as log:
            return any(mark in line and line.rstrip().endswith("ready") for line in log)
        return False

    # What users find

    def steps(self) -> list[Step]:
        hosts = Step("hosts", self.hosts_known, (self.name, "identity", "placement"), self.log)
        return [*super().steps(), hosts]

    def hosts_known(self) -> None:
        """Wait until every compute host offers its resources, and map it to its cell."""
        admin = Rest(self.site)
        wanted = set(self.hosts())
        stamp = self.stamp("hosts-mapped")
        names = ", ".join(sorted(wanted))
        poll(f"hosts not in Placement: {names}", patient(lambda: wanted <= self.providers(admin)), 120)
        poll(f"hosts not up: {names}", patient(lambda: wanted <= self.reporting(admin)), 120)
        if not stamp.exists():
            poll(f"hosts not mapped to their cells: {names}", lambda: wanted <= self.discovered(), 120, 1)
            stamp.touch()

    def providers(self, admin: Rest) -> set[str]:
        """Resource providers in Placement, by name."""
        return {
            item["name"] for item in admin.get(self.site.url("placement", "/resource_providers"))["resource_providers"]
        }

    def reporting(self, admin: Rest) -> set[str]:
        """Hosts whose service is up; where the API does not tell, all count."""
        try:
            services = admin.get(self.site.url("compute", "/v2.1/os-services?binary=nova-compute"))["services"]
        except RestError as error:
            if error.code == NOT_IMPLEMENTED:
                return set(self.hosts())
            raise
        return {item["host"] for item in services if item["state"] == "up"}

    def discovered(self) -> set[str]:
        """Hosts that are mapped to a cell, after looking for new ones."""
        said = self.manage(["cell_v2", "discover_hosts"], ["cell_v2", "list_hosts"])
        return {host for host in self.hosts() if f" {host} " in said}

    def fill(self) -> None:
        admin = Rest(self.site)
        base = self.site.url("compute", "/v2.1/flavors")
        present = {flavor["id"] for flavor in admin.get(f"{base}?is_public=none")["flavors"]}
        missing = [flavor for flavor in FLAVORS if flavor[0] not in present]
        try:
            for identity, name, ram, vcpus, disk in missing:
                flavor = {"id": identity, "name": name, "ram": ram, "vcpus": vcpus, "disk": disk}
                admin.post(base, {"flavor": flavor})
        except RestError as error:
            if error.code != NOT_IMPLEMENTED:
                raise
            self.record_flavors(missing)

    def record_flavors(self, missing: Sequence[tuple[str, str, int, int, int]]) -> None:
        """Straight into the API database, for an API that cannot create flavors."""
        from kilonova.db.api.flavors import flavor_create
        from kilonova.db.engine import Database

        database = Database(self.database_url("nova_api"))
        with database.write() as tx:
            for identity, name, ram, vcpus, disk in missing:
                sizes = {"memory_mb": ram, "vcpus": vcpus, "root_gb": disk, "ephemeral_gb": 0, "swap": 0}
                flavor_create(tx, {"flavorid": identity, "name": name, **sizes, "rxtx_factor": 1.0, "is_public": True})
        database.dispose()
