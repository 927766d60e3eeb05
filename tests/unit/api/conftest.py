"""The whole API over SQLite databases (cell0 and two cells), fakes of the other services and a bus in the process."""

from __future__ import annotations

import dataclasses
import shutil
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import falcon.testing
import pytest
from tests.fakes import Cloud

from kilonova import conf as configuration
from kilonova.api.app import make_app
from kilonova.db.api import cell_mappings, flavors
from kilonova.db.cells import CELL0_UUID, Cells
from kilonova.db.engine import Database
from kilonova.db.migrations import sync
from kilonova.wire.rpc.bus import Bus

PROJECT = "6f70656e737461636b20342065766572"
CELLS = ("c1", "c2")


@pytest.fixture(scope="session")
def empty_databases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("databases")
    for name, make in (("api", sync.sync_api), ("cell", sync.sync_main)):
        database = Database(f"sqlite:///{folder}/{name}.db")
        make(database)
        database.dispose()
    return folder


@dataclasses.dataclass
class World:
    """An API and what is around it. Requests are made as ``user`` of ``project``."""

    conf: Any
    cells: Cells
    bus: Bus
    cloud: Cloud
    app: Any
    uuids: dict[str, str]

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        version: str = "2.1",
        user: str = "joe",
        project: str = PROJECT,
    ) -> Any:
        headers = {"X-Auth-Token": f"{user}:{project}", "OpenStack-API-Version": f"compute {version}"}
        more = {} if body is None else {"json": body}
        client = falcon.testing.TestClient(self.app)
        return client.simulate_request(method, f"/v2.1{path}", headers=headers, **more)

    def get(self, path: str, **more: Any) -> Any:
        return self.request("GET", path, **more)

    def post(self, path: str, body: Any, **more: Any) -> Any:
        return self.request("POST", path, body, **more)

    def cell(self, name: str) -> Any:
        return self.cells.cell(self.uuids[name])

    def flavor(self, name: str = "small", **more: Any) -> dict[str, Any]:
        values = {
            "name": name,
            "flavorid": name,
            "memory_mb": 512,
            "vcpus": 1,
            "root_gb": 1,
            "ephemeral_gb": 0,
            "swap": 0,
            "rxtx_factor": 1.0,
            "is_public": True,
            "disabled": False,
        }
        specs = more.pop("extra_specs", {})
        with self.cells.api.write() as tx:
            return flavors.flavor_create(tx, values | more, specs)


@pytest.fixture
def world(empty_databases: Path, tmp_path: Path) -> Iterator[World]:
    for name in ("api", "cell0", *CELLS):
        source = "api" if name == "api" else "cell"
        shutil.copy(empty_databases / f"{source}.db", tmp_path / f"{name}.db")
    conf = configuration.new()
    conf([], project="nova", default_config_files=[], default_config_dirs=[])
    conf.set_override("auth_strategy", "noauth2", group="api")
    conf.set_override("connection", f"sqlite:///{tmp_path}/api.db", group="api_database")
    conf.set_override("connection", f"sqlite:///{tmp_path}/c1.db", group="database")
    bus_url = f"fake://{uuid.uuid4()}/"
    cells = Cells(conf)
    uuids = {"cell0": CELL0_UUID} | {name: str(uuid.uuid4()) for name in CELLS}
    with cells.api.write() as tx:
        for name, cell_uuid in uuids.items():
            values = {
                "uuid": cell_uuid,
                "name": name,
                "transport_url": "none:///" if name == "cell0" else bus_url,
                "database_connection": f"sqlite:///{tmp_path}/{name}.db",
                "disabled": False,
            }
            cell_mappings.cell_mapping_create(tx, values)
    cloud = Cloud()
    cloud.keystone.projects.add(PROJECT)
    bus = Bus(conf, bus_url)
    yield World(conf, cells, bus, cloud, make_app(conf, cells, bus, cloud.clients), uuids)
    cells.dispose()


class Recorder:
    """Takes every message of a service and answers what it was told to."""

    def __init__(self) -> None:
        self.messages: list[tuple[str, dict[str, Any]]] = []
        self.answers: dict[str, Any] = {}
        self.arrived = threading.Condition()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)

        def take(ctxt: Any, **arguments: Any) -> Any:
            with self.arrived:
                self.messages.append((name, arguments))
                self.arrived.notify_all()
            return self.answers.get(name)

        return take

    def wait(self, name: str, count: int = 1) -> dict[str, Any]:
        """The arguments of the ``count``th message of that name, within five seconds."""

        def found() -> list[dict[str, Any]]:
            return [arguments for method, arguments in self.messages if method == name]

        with self.arrived:
            assert self.arrived.wait_for(lambda: len(found()) >= count, timeout=5), f"{name}: {self.messages}"
            return found()[count - 1]


@pytest.fixture
def conductor(world: World) -> Iterator[Recorder]:
    yield from _served(world, "conductor", "a-conductor")


@pytest.fixture
def host(world: World) -> Iterator[Recorder]:
    """The compute service of host h1."""
    yield from _served(world, "compute", "h1")


def _served(world: World, kind: str, server: str) -> Iterator[Recorder]:
    recorder = Recorder()
    served = world.bus.serve(kind, server, [recorder])
    served.start()
    yield recorder
    served.stop()
    served.wait(5)
