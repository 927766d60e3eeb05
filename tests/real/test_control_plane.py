"""The whole control plane in one process, its databases on MariaDB and PostgreSQL."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from tests.ops.control_plane import CELL, ControlPlane
from tests.real.database_fixtures import database_server, new_databases
from tests.unit.db.conftest import templates

from kilonova.db.api import cell_mappings
from kilonova.db.cells import CELL0_UUID
from kilonova.db.engine import Database
from kilonova.db.migrations import sync

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

__all__ = ["database_server", "templates"]


class OnServers(ControlPlane):
    """Its databases are the given ones: API, cell0, cell1."""

    def __init__(self, folder: pathlib.Path, templates: pathlib.Path, urls: Sequence[str]) -> None:
        self.urls = urls
        super().__init__(folder, templates)

    def _configure(self, templates: pathlib.Path) -> Any:
        conf = super()._configure(templates)
        conf.set_override("connection", self.urls[0], group="api_database")
        conf.set_override("connection", self.urls[2], group="database")
        return conf

    def _map_cells(self) -> None:
        super()._map_cells()
        for uuid, url in ((CELL0_UUID, self.urls[1]), (CELL, self.urls[2])):
            self.parts.cells.api.run(cell_mappings.cell_mapping_update, uuid, {"database_connection": url})
        self.parts.cells.refresh()


@pytest.fixture
def cloud(database_server: str, tmp_path: pathlib.Path, templates: pathlib.Path) -> Iterator[ControlPlane]:
    with new_databases(database_server, ("api", "cell0", "cell1")) as urls:
        for url, make in zip(urls, (sync.sync_api, sync.sync_main, sync.sync_main), strict=True):
            database = Database(url)
            make(database)
            database.dispose()
        made = OnServers(tmp_path, templates, urls)
        yield made
        made.close()
        made.parts.cells.dispose()


def test_a_server_lives_its_whole_life(cloud: ControlPlane) -> None:
    server = cloud.create("one", metadata={"a": "1"}, tags=["t"])["id"]
    built = cloud.until_status(server, "ACTIVE")
    assert built["metadata"] == {"a": "1"}
    cloud.act(server, "os-stop")
    cloud.until_status(server, "SHUTOFF")
    cloud.act(server, "os-start")
    cloud.until_status(server, "ACTIVE")
    cloud.act(server, "reboot", {"type": "HARD"})
    cloud.until_status(server, "ACTIVE")
    assert [action["action"] for action in cloud.actions(server)] == ["reboot", "start", "stop", "create"]
    assert [s["id"] for s in cloud.request("GET", "/servers/detail?tags=t", status=200)["servers"]] == [server]
    cloud.delete(server)
    cloud.until_gone(server)
    cloud.assert_clean()


def test_many_servers_at_once_all_come_and_go(cloud: ControlPlane) -> None:
    cloud.create("many", min_count=8, max_count=8)
    made = cloud.request("GET", "/servers", status=200)["servers"]
    assert len(made) == 8
    for server in made:
        cloud.until_status(server["id"], "ACTIVE", 90)
    for server in made:
        cloud.delete(server["id"])
    for server in made:
        cloud.until_gone(server["id"], 90)
    cloud.assert_clean()


def test_no_host_is_recorded_in_cell0(cloud: ControlPlane) -> None:
    flavor = cloud.make_flavor("huge", root_gb=10_000_000)
    server = cloud.create("big", flavorRef=flavor)["id"]
    found = cloud.until_status(server, "ERROR")
    assert found["fault"]["message"]
    cloud.delete(server)
    cloud.until_gone(server)
    cloud.assert_clean()
