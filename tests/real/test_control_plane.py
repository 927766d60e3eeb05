"""The whole control plane in one process, its databases on MariaDB and PostgreSQL."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator

import pytest
from tests.ops.control_plane import ControlPlane
from tests.real.database_fixtures import database_server
from tests.real.on_servers import on_servers
from tests.unit.db.conftest import templates

from kilonova.db import exact
from kilonova.wire.http import bounds

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

__all__ = ["database_server", "templates"]


@pytest.fixture
def cloud(database_server: str, tmp_path: pathlib.Path, templates: pathlib.Path) -> Iterator[ControlPlane]:
    with on_servers(database_server, tmp_path, templates) as made:
        yield made


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


def test_r23_a_record_that_cannot_be_written_ends_in_error_with_a_reason(
    cloud: ControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A peer's API accepts what MySQL's tables do not hold; here PostgreSQL takes it."""
    monkeypatch.setattr(bounds, "fits", lambda text: True)
    monkeypatch.setattr(exact, "clash", lambda new, present=(): None)
    smile = "\U0001f600"
    made = [
        cloud.create("metadata", metadata={"a": smile})["id"],
        cloud.create("tags", tags=["tag", "TAG", smile], version="2.52")["id"],
    ]
    mysql = cloud.parts.cells.api.dialect == "mysql"
    for server in made:
        cloud.until_status(server, "ERROR" if mysql else "ACTIVE", 90)
        if mysql:
            shown = cloud.request("GET", f"/servers/{server}", status=200)["server"]
            assert "text of a kind or length" in shown["fault"]["message"]
        cloud.delete(server)
        cloud.until_gone(server, 90)
    cloud.assert_clean()
