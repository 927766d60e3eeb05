"""A cloud of our services as processes of their own, on a real broker and a real database; the others are the fakes,
over HTTP."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pymysql
import sqlalchemy as sa
from tests.real import chaos, servers
from tests.real.http_fakes import SERVICES, HttpFakes

from kilonova.db.api import cell_mappings, flavors, host_mappings
from kilonova.db.api.tables import INSTANCE_MAPPINGS, REQUEST_SPECS
from kilonova.db.cell.tables import INSTANCES
from kilonova.db.cells import CELL0_UUID
from kilonova.db.engine import Database
from kilonova.db.migrations import sync

CELL = "11111111-1111-1111-1111-111111111111"
PROJECT = "6f70656e737461636b20342065766572"
HOSTS = ("h1", "h2")
DATABASES = ("api", "cell0", "cell1")
AMOUNTS = {"VCPU": 1, "MEMORY_MB": 64, "DISK_GB": 1}
"""What one server holds."""


class Processes:
    """Our services by name, each with its command; killed and started again one at a time."""

    def __init__(self, folder: Path, commands: dict[str, list[str]]) -> None:
        self._folder = folder
        self._commands = commands
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str) -> None:
        with (self._folder / f"{name}.log").open("a") as log:
            self._running[name] = subprocess.Popen(self._commands[name], stdout=log, stderr=log)

    def start_all(self) -> None:
        for name in self._commands:
            self.start(name)

    def stand_still(self, name: str, seconds: float) -> None:
        """It does nothing for a while, and does not know."""
        process = self._running[name]
        process.send_signal(signal.SIGSTOP)
        try:
            time.sleep(seconds)
        finally:
            process.send_signal(signal.SIGCONT)

    def kill(self, name: str) -> None:
        process = self._running.pop(name)
        process.send_signal(signal.SIGKILL)
        process.wait(10)

    def stop(self) -> None:
        for process in self._running.values():
            process.kill()
        for process in self._running.values():
            process.wait(10)


class Cloud(chaos.Target):
    """One cell. `cell_bus`: where it has a bus of its own."""

    def __init__(self, folder: Path, database: servers.Mariadb, bus: str, cell_bus: str | None = None) -> None:
        self.folder, self.database = folder, database
        self.bus, self.cell_bus = bus, cell_bus or bus
        self.fakes = HttpFakes()
        self.port = servers._free_port()
        self.url = f"http://127.0.0.1:{self.port}/v2.1"
        self.urls = {name: f"{database.url}{name}" for name in DATABASES}
        self.api, self.cell0, self.cell = (Database(url) for url in self.urls.values())
        sync.sync_api(self.api)
        sync.sync_main(self.cell0)
        sync.sync_main(self.cell)
        self._records()
        self.network = self.fakes.cloud.neutron.network(project=PROJECT)
        self.image = self.fakes.cloud.glance.image(project=PROJECT)
        self.configure()
        self.processes = Processes(folder, self.commands())

    def commands(self) -> dict[str, list[str]]:
        return {
            "conductor": self.command("conductor"),
            "scheduler": self.command("scheduler"),
            **{host: self.command("compute", "nova", host) for host in HOSTS},
            "api": self.command("api"),
        }

    def command(self, kind: str, *files: str) -> list[str]:
        """Of a service of that kind, with files of these names."""
        given = [word for name in files or ("nova",) for word in ("--config-file", str(self.folder / f"{name}.conf"))]
        return [sys.executable, "-m", f"kilonova.cmd.{kind}", *given]

    def _records(self) -> None:
        with self.api.write() as tx:
            for uuid, name, transport in ((CELL0_UUID, "cell0", "none:///"), (CELL, "cell1", self.cell_bus)):
                row = {"uuid": uuid, "name": name, "transport_url": transport, "database_connection": self.urls[name]}
                cell = cell_mappings.cell_mapping_create(tx, row | {"disabled": False})
            for host in HOSTS:
                host_mappings.host_mapping_create(tx, host, cell["id"])
            flavor = {
                "name": "small",
                "flavorid": "small",
                "memory_mb": 64,
                "vcpus": 1,
                "root_gb": 1,
                "ephemeral_gb": 0,
            }
            more = {"swap": 0, "rxtx_factor": 1.0, "is_public": True, "disabled": False}
            flavors.flavor_create(tx, flavor | more, {})

    def configure(self) -> None:
        self.write("nova", self.sections())
        for host in HOSTS:
            self.write(host, {"DEFAULT": {"host": host, "state_path": self.folder / host}})

    def sections(self) -> dict[str, dict[str, Any]]:
        """The file that all services read."""
        return {
            "DEFAULT": {
                "transport_url": self.bus,
                "host": "control",
                "osapi_compute_listen": "127.0.0.1",
                "osapi_compute_listen_port": self.port,
                **chaos.BEATS,
                "report_interval": 5,
                "compute_driver": "fake.FakeDriver",
                "state_path": self.folder / "control",
                "shutdown_timeout": 0,
            },
            "api": {"auth_strategy": "noauth2"},
            "api_database": {"connection": self.urls["api"]},
            "database": {"connection": self.urls["cell1"]},
            "quota": {"instances": -1, "cores": -1, "ram": -1},
            "kilonova": {**chaos.LEASES, **chaos.FAKE},
            "service_user": {"auth_type": "none"},
            **{name: {"auth_type": "none", "endpoint_override": self.fakes.url(name)} for name in SERVICES},
            "cinder": {"auth_type": "none", "endpoint_template": self.fakes.url("cinder")},
        }

    def write(self, name: str, sections: Mapping[str, Mapping[str, Any]]) -> None:
        lines = []
        for section, options in sections.items():
            lines += [f"[{section}]", *(f"{option} = {value}" for option, value in options.items()), ""]
        (self.folder / f"{name}.conf").write_text("\n".join(lines))

    def kill(self, name: str) -> None:
        self.processes.kill(name)

    def start(self, name: str) -> None:
        self.processes.start(name)

    def headers(self) -> Mapping[str, str]:
        return {"X-Auth-Token": f"admin:{PROJECT}"}

    def wish(self) -> Mapping[str, Any]:
        return {"flavorRef": "small", "imageRef": self.image, "networks": [{"uuid": self.network}]}

    def disagreements(self) -> list[str]:
        columns = (INSTANCES.c.uuid, INSTANCES.c.vm_state, INSTANCES.c.task_state, INSTANCES.c.host)
        alive = sa.select(*columns).where(INSTANCES.c.deleted == 0)
        rows = [row for cell in (self.cell0, self.cell) for row in _rows(cell, alive)]
        records = {row.uuid: row for row in rows}
        placement, neutron = self.fakes.cloud.placement, self.fakes.cloud.neutron
        names = {one.uuid: one.name for one in list(placement.providers.values())}
        claims = {uuid: dict(placement.held(uuid)) for uuid in list(placement.consumers)}
        held = {uuid: [names[provider] for provider in one] for uuid, one in claims.items()}
        ports = [port["device_id"] for port in list(neutron.ports.values()) if port.get("device_id")]
        found = chaos.differences(records, held, ports)
        found += [f"{uuid} holds {one}" for uuid, one in claims.items() for used in one.values() if used != AMOUNTS]
        found += ["a server is in two cells"] if len(records) < len(rows) else []
        found += chaos.on_the_way(records, _rows(self.api, chaos.WISHES), _rows(self.api, chaos.MAPPINGS))
        found += self._specs(records)
        return found + chaos.misplaced_guests(records, {host: self.folder / host for host in HOSTS})

    def _specs(self, records: Mapping[str, Any]) -> list[str]:
        """A request spec stays as long as its server's mapping, which is until deleted servers are archived."""
        specs = {row.instance_uuid for row in _rows(self.api, sa.select(REQUEST_SPECS.c.instance_uuid))}
        mapped = {row.instance_uuid for row in _rows(self.api, sa.select(INSTANCE_MAPPINGS.c.instance_uuid))}
        found = [f"{uuid} has no request spec" for uuid in {*records} - specs]
        return found + [f"request spec of {uuid}, which is not mapped" for uuid in specs - mapped]

    def flows(self) -> list[str]:
        """Those that have not ended."""
        databases = (self.api, self.cell0, self.cell)
        return chaos.live_flows(row for database in databases for row in _rows(database, chaos.LIVE_FLOWS))


def _rows(database: Database, query: sa.Select[Any]) -> list[Any]:
    with database.read() as tx:
        return list(tx.execute(query))


@contextlib.contextmanager
def databases(folder: Path) -> Iterator[servers.Mariadb]:
    """A MariaDB server with databases for a cloud."""
    folder.mkdir()
    server = servers.Mariadb(folder)
    try:
        parts = sa.make_url(server.url)
        with pymysql.connect(
            host=parts.host, port=parts.port or 3306, user=parts.username, password=parts.password
        ) as c:
            for name in DATABASES:
                c.cursor().execute(f"CREATE DATABASE {name}")
        yield server
    finally:
        server.stop()


@contextlib.contextmanager
def running(cloud: Cloud) -> Iterator[None]:
    """Its processes run, and answer when the block begins."""
    cloud.processes.start_all()
    try:
        cloud.until("API and hosts up", lambda: _up(cloud), 120)
        yield
    finally:
        cloud.processes.stop()
        cloud.fakes.stop()


def _up(cloud: Cloud) -> bool:
    status, _ = cloud.request("GET", "/servers")
    return status == 200 and len(cloud.fakes.cloud.placement.providers) == len(HOSTS)
