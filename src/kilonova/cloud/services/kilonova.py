"""The compute service itself: one process in profile embedded, one per service and cell in profile full."""

from __future__ import annotations

import concurrent.futures
import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path

from kilonova.cloud import ini, ping
from kilonova.cloud.commands import run, run_each
from kilonova.cloud.daemons import Daemon
from kilonova.cloud.probes import http_answers
from kilonova.cloud.rest import Rest, RestError, patient, poll
from kilonova.cloud.services.kilonova_conf import CONTROLLER, Configured
from kilonova.cloud.steps import Step

FLAVORS = [
    ("1", "c1.tiny", 192, 1, 1),
    ("2", "c1.small", 512, 1, 5),
    ("3", "c1.medium", 1024, 2, 10),
    ("4", "c1.large", 2048, 2, 20),
]
"""(id, name, MiB, vCPUs, GiB). The first is for the guest image."""

NOT_IMPLEMENTED = 501


class Compute(Configured):
    name = "compute"
    set_up_needs = ("packages",)
    data_needs = ("identity", "hosts")

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
        cell0 = self.database_url("nova_cell0")
        # The default is the database of the file with `_cell0` behind its name. A path has an ending, and no password.
        where = [] if self.site.full else ["--database_connection", cell0]
        above = cell0.replace("/nova_cell0?", "/nova?")
        self.manage(["cell_v2", "map_cell0", *where], conf=self.above_cells("cell0", above))
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
