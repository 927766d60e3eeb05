"""A server's life with the databases on MariaDB and PostgreSQL and the bus on RabbitMQ."""

from __future__ import annotations

import pathlib
import tempfile
from collections.abc import Iterator

import pytest
from tests.needs import needs
from tests.ops.control_plane import ControlPlane
from tests.real import broker
from tests.real.database_fixtures import database_server
from tests.real.on_servers import on_servers
from tests.unit.db.conftest import templates

pytestmark = [pytest.mark.real, pytest.mark.timeout(600), pytest.mark.xdist_group("servers"), needs("rabbitmq")]

__all__ = ["database_server", "templates"]


@pytest.fixture(scope="module")
def bus() -> Iterator[str]:
    with (
        tempfile.TemporaryDirectory(prefix="kn-mq-", ignore_cleanup_errors=True) as folder,
        broker.rabbitmq(pathlib.Path(folder)) as url,
    ):
        yield url


@pytest.fixture
def cloud(bus: str, database_server: str, tmp_path: pathlib.Path, templates: pathlib.Path) -> Iterator[ControlPlane]:
    with on_servers(database_server, tmp_path, templates, bus) as made:
        yield made


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
