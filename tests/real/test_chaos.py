"""kill -9 of any process of ours at random moments: every server comes to an end, and all records agree.

Our services are processes of their own, on a real broker and a real database; the others are the fakes, over HTTP.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pymysql
import pytest
import sqlalchemy as sa
from tests.needs import needs
from tests.real import broker, chaos, servers
from tests.real.http_fakes import SERVICES, HttpFakes

from kilonova.db.api import cell_mappings, flavors, host_mappings
from kilonova.db.cell.tables import INSTANCES
from kilonova.db.cells import CELL0_UUID
from kilonova.db.engine import Database
from kilonova.db.migrations import sync

pytestmark = [
    pytest.mark.real,
    pytest.mark.chaos,
    pytest.mark.timeout(1500),
    needs("rabbitmq", "mariadb"),
]

CELL = "11111111-1111-1111-1111-111111111111"
PROJECT = "6f70656e737461636b20342065766572"
HOSTS = ("h1", "h2")


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
    def __init__(self, folder: Path, database: str, bus: str) -> None:
        self.folder = folder
        self.fakes = HttpFakes()
        self.port = servers._free_port()
        self.url = f"http://127.0.0.1:{self.port}/v2.1"
        urls = {name: f"{database}{name}" for name in ("api", "cell0", "cell1")}
        self.api, self.cell0, self.cell = (Database(url) for url in urls.values())
        sync.sync_api(self.api)
        sync.sync_main(self.cell0)
        sync.sync_main(self.cell)
        self._records(urls, bus)
        self.network = self.fakes.cloud.neutron.network(project=PROJECT)
        self.image = self.fakes.cloud.glance.image(project=PROJECT)
        self._configure(urls, bus)
        run = [sys.executable, "-m"]
        base = ["--config-file", str(folder / "nova.conf")]
        self.processes = Processes(
            folder,
            {
                "conductor": [*run, "kilonova.cmd.conductor", *base],
                "scheduler": [*run, "kilonova.cmd.scheduler", *base],
                **{h: [*run, "kilonova.cmd.compute", *base, "--config-file", str(folder / f"{h}.conf")] for h in HOSTS},
                "api": [*run, "kilonova.cmd.api", *base],
            },
        )

    def _records(self, urls: dict[str, str], bus: str) -> None:
        with self.api.write() as tx:
            for uuid, name, transport in ((CELL0_UUID, "cell0", "none:///"), (CELL, "cell1", bus)):
                row = {"uuid": uuid, "name": name, "transport_url": transport, "database_connection": urls[name]}
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

    def _configure(self, urls: dict[str, str], bus: str) -> None:
        sections: dict[str, dict[str, Any]] = {
            "DEFAULT": {
                "transport_url": bus,
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
            "api_database": {"connection": urls["api"]},
            "database": {"connection": urls["cell1"]},
            "quota": {"instances": -1, "cores": -1, "ram": -1},
            "kilonova": {**chaos.LEASES, **chaos.FAKE},
            "service_user": {"auth_type": "none"},
            **{name: {"auth_type": "none", "endpoint_override": self.fakes.url(name)} for name in SERVICES},
        }
        sections["cinder"] = {"auth_type": "none", "endpoint_template": self.fakes.url("cinder")}
        _write(self.folder / "nova.conf", sections)
        for host in HOSTS:
            _write(self.folder / f"{host}.conf", {"DEFAULT": {"host": host, "state_path": self.folder / host}})

    def kill(self, name: str) -> None:
        self.processes.kill(name)

    def start(self, name: str) -> None:
        self.processes.start(name)

    def headers(self) -> Mapping[str, str]:
        return {"X-Auth-Token": f"admin:{PROJECT}"}

    def wish(self) -> Mapping[str, Any]:
        return {"flavorRef": "small", "imageRef": self.image, "networks": [{"uuid": self.network}]}

    def disagreements(self) -> list[str]:
        with self.cell.read() as tx:
            columns = (INSTANCES.c.uuid, INSTANCES.c.vm_state, INSTANCES.c.host)
            rows = tx.execute(sa.select(*columns).where(INSTANCES.c.deleted == 0))
            records = {row.uuid: row for row in rows}
        placement, neutron = self.fakes.cloud.placement, self.fakes.cloud.neutron
        names = {one.uuid: one.name for one in placement.providers.values()}
        held = {uuid: [names[provider] for provider in placement.held(uuid)] for uuid in list(placement.consumers)}
        ports = [port["device_id"] for port in list(neutron.ports.values()) if port.get("device_id")]
        return chaos.differences(records, held, ports)


def _write(path: Path, sections: dict[str, dict[str, Any]]) -> None:
    lines = []
    for name, options in sections.items():
        lines += [f"[{name}]", *(f"{option} = {value}" for option, value in options.items()), ""]
    path.write_text("\n".join(lines))


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[Cloud]:
    for name in ("db", "bus", "run"):
        (tmp_path / name).mkdir()
    with servers.mariadb(tmp_path / "db") as database, broker.rabbitmq(tmp_path / "bus") as bus:
        parts = sa.make_url(database)
        with pymysql.connect(
            host=parts.host, port=parts.port or 3306, user=parts.username, password=parts.password
        ) as c:
            for name in ("api", "cell0", "cell1"):
                c.cursor().execute(f"CREATE DATABASE {name}")
        made = Cloud(tmp_path / "run", database, bus)
        made.processes.start_all()
        made.until("API and hosts up", lambda: _up(made), 120)
        try:
            yield made
        finally:
            made.processes.stop()
            made.fakes.stop()


def _up(cloud: Cloud) -> bool:
    status, _ = cloud.request("GET", "/servers")
    return status == 200 and len(cloud.fakes.cloud.placement.providers) == len(HOSTS)


@pytest.mark.parametrize("victim", ["conductor", "scheduler", "api", "h1"])
def test_one_process_is_killed_again_and_again(cloud: Cloud, victim: str) -> None:
    chaos.storm(cloud, [victim], chaos.dice())
