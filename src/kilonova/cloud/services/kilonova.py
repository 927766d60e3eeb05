"""The compute service itself: one process in profile embedded, one per service and cell in profile full."""

from __future__ import annotations

import concurrent.futures
import contextlib
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from kilonova.cloud import ini
from kilonova.cloud.commands import run, run_each
from kilonova.cloud.daemons import Daemon, http_answers
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
        if self.site.bus:
            for cell in self.cells:
                ini.write(self.cell_conf(cell), self.for_cell(cell))
            for host in self.hosts():
                ini.write(self.host_conf(host), self.for_host(host))

    def cell_conf(self, cell: str) -> Path:
        return self.folder / f"nova-{cell}.conf"

    def host_conf(self, host: str) -> Path:
        return self.folder / f"host-{host}.conf"

    def top(self) -> dict[str, dict[str, Any]]:
        """Configuration of everything above the cells; embedded, of the one process."""
        one = not self.site.bus
        sections = self.shared() | {
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

    def for_cell(self, cell: str) -> dict[str, dict[str, Any]]:
        sections = self.shared()
        sections["DEFAULT"]["transport_url"] = self.site.transport(f"nova_{cell}")
        return sections | {"database": {"connection": self.database_url(f"nova_{cell}")}}

    def for_host(self, host: str) -> dict[str, dict[str, Any]]:
        """What only one compute host has, on top of its cell's configuration."""
        state = self.data / host
        (state / "instances").mkdir(parents=True, exist_ok=True)
        options = self.driver_options()
        own = {"host": host, "state_path": state, "instances_path": state / "instances"}
        lock = {"oslo_concurrency": {"lock_path": state / "lock"}}
        return options | {"DEFAULT": options["DEFAULT"] | own} | lock

    def driver_options(self) -> dict[str, dict[str, Any]]:
        if self.fake:
            return {"DEFAULT": {"compute_driver": self.fake_driver}}
        libvirt = Libvirt(self.site, self.supervisor)
        options: dict[str, dict[str, Any]] = {
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
        if self.site.settings.network == "ovn":
            options["os_vif_ovs"] = {
                "ovsdb_connection": f"unix:{Ovn(self.site, self.supervisor).socket('ovs')}",
            }
        return options

    @property
    def fake_driver(self) -> str:
        return "fake.FakeDriverWithoutFakeNodes" if self.site.peer else "fake.FakeDriver"

    def shared(self) -> dict[str, dict[str, Any]]:
        auth = keystone_auth(self.site, "nova")
        region = {"region_name": auth["region_name"]}
        login = {name: value for name, value in auth.items() if name not in region}
        (self.data / "lock").mkdir(parents=True, exist_ok=True)
        (self.data / "instances").mkdir(parents=True, exist_ok=True)
        sections: dict[str, dict[str, Any]] = {
            "DEFAULT": {
                "my_ip": LOOPBACK,
                "host": "controller",
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
            "keystone_authtoken": self.authtoken(),
            "service_user": login | {"send_service_user_token": True},
            "keystone": auth,
            "placement": auth,
            "glance": region | {"valid_interfaces": "public"},
            "neutron": auth
            | {
                "valid_interfaces": "public",
                "service_metadata_proxy": True,
                "metadata_proxy_shared_secret": self.site.settings.password,
            },
            "oslo_concurrency": {"lock_path": self.data / "lock"},
            "oslo_messaging_notifications": {"driver": "noop"},
            "scheduler": {"discover_hosts_in_cells_interval": 30},
            "filter_scheduler": {"enabled_filters": ",".join(FILTERS)},
            "quota": QUOTAS,
            "vnc": {"enabled": True, "server_listen": LOOPBACK},
        }
        helper = {"helper_command": f"{self.bin / 'privsep-helper'} --config-file {self.conf}"}
        sections |= dict.fromkeys(PRIVILEGED, helper)
        if self.site.peer:
            for section, options in self.for_peer().items():
                sections[section] = sections.get(section, {}) | options
        if self.site.settings.volumes:
            sections["cinder"] = login | {"catalog_info": "block-storage::publicURL", "os_region_name": REGION}
        elif not self.site.peer:
            sections["kilonova"] = {"reconcile_disabled": "orphan_attachments"}
        return sections

    def for_peer(self) -> dict[str, dict[str, Any]]:
        """What only Nova obeys."""
        return {
            "wsgi": {"api_paste_config": self.folder / "api-paste.ini"},
            "cache": {"enabled": True, "backend": "oslo_cache.dict"},
            "key_manager": {"backend": "nova.keymgr.conf_key_mgr.ConfKeyManager", "fixed_key": "0123456789abcdef" * 4},
            "scheduler": {"workers": 1},
            "conductor": {"workers": 1},
            "neutron": {"default_floating_pool": "public"},
            "vnc": {"server_proxyclient_address": LOOPBACK},
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
        to_cell0 = ["cell_v2", "map_cell0", "--database_connection", self.database_url("nova_cell0")]
        if self.site.bus:
            work = {None: [["api_db", "sync"], to_cell0, main]} | {self.cell_conf(cell): [main] for cell in self.cells}
        else:
            work = {None: [["api_db", "sync"], to_cell0, main], self.cell0_conf(): [main]}
        with concurrent.futures.ThreadPoolExecutor(len(work), "schema") as pool:
            for future in [pool.submit(self.manage, *commands, conf=conf) for conf, commands in work.items()]:
                future.result()
        known = self.manage(["cell_v2", "list_cells"])
        missing = [cell for cell in self.cells if f" {cell} " not in known]
        if missing:
            self.manage(*(self.create_cell(cell) for cell in missing))

    def create_cell(self, cell: str) -> list[str]:
        bus = self.site.transport(f"nova_{cell}") if self.site.bus else self.site.transport("nova")
        where = ["--database_connection", self.database_url(f"nova_{cell}"), "--transport-url", bus]
        return ["cell_v2", "create_cell", "--name", cell, *where]

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
        hosts = [
            self.program(f"nova-compute-{host}", "nova-compute", [self.cell_conf(cell), self.host_conf(host)])
            for host, cell in self.hosts().items()
        ]
        return [self.program("nova-scheduler", "nova-scheduler", [self.conf]), *hosts]

    def program(
        self, name: str, program: str, files: Sequence[Path], ready: Callable[[], bool] | None = None
    ) -> Daemon:
        arguments = [word for file in files for word in ("--config-file", file)]
        log = ["--log-file", self.site.log / f"{name}.log"]
        return Daemon(
            name, [self.bin / program, *arguments, *log], self.foreign, ready or (lambda: self.says_ready(name))
        )

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
