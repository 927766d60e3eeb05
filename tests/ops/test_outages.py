"""Other services, and databases, that are away for a while: builds wait and go on, accepted deletes are carried out."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import sqlalchemy as sa
from tests.ops.control_plane import CELL, PROJECT, ControlPlane

from kilonova.clients.placement.client import Placement
from kilonova.conductor.building import sending
from kilonova.db.engine import Database

SERVICES = ("placement", "neutron", "cinder", "glance")


@contextlib.contextmanager
def away(cloud: ControlPlane, name: str, how: int) -> Iterator[Callable[[int], bool]]:
    """The service is away inside of the block; tells whether it was asked so often meanwhile."""
    fake = getattr(cloud.cloud, name)
    before = len(fake.calls)
    fake.away = how
    try:
        yield lambda times: len(fake.calls) - before >= times
    finally:
        fake.away = None


def devices(cloud: ControlPlane) -> list[dict[str, Any]]:
    """The image, and a volume of its own."""
    volume = cloud.cloud.cinder.volume(project=PROJECT)
    return [
        {"source_type": "image", "destination_type": "local", "boot_index": 0, "uuid": cloud.image},
        {"source_type": "volume", "destination_type": "volume", "boot_index": 1, "uuid": volume},
    ]


def _all_active(cloud: ControlPlane, servers: list[str]) -> bool:
    return all(cloud.show(server)["status"] == "ACTIVE" for server in servers)


@pytest.mark.parametrize("how", [503, 502, 429, 0])
@pytest.mark.parametrize("name", SERVICES)
def test_d4_builds_wait_for_a_service_that_is_away(
    cloud: ControlPlane, monkeypatch: pytest.MonkeyPatch, name: str, how: int
) -> None:
    """They are held before their hosts are chosen, or before these are asked, until the service is away."""
    where: Any = (Placement, "allocation_candidates") if name == "placement" else (sending, "cast_build")
    go_on = cloud.hold(monkeypatch, *where)
    held = [cloud.create(f"s{number}", block_device_mapping_v2=devices(cloud))["id"] for number in range(3)]
    with away(cloud, name, how) as asked:
        go_on.set()
        cloud.until("asked again and again, or not needed", lambda: asked(3 * len(held)) or _all_active(cloud, held))
    for server in held:
        cloud.until_status(server, "ACTIVE")
    assert not cloud.leftovers()


@pytest.mark.parametrize("how", [503, 0])
@pytest.mark.parametrize("name", SERVICES[:3])
def test_d4_an_accepted_delete_is_carried_out(
    cloud: ControlPlane, forward: Callable[[float], None], name: str, how: int
) -> None:
    """Though the service stays away for longer than a host waits for it."""
    cloud.conf.set_override("service_patience", 1.0, "kilonova")
    servers = [cloud.active(block_device_mapping_v2=devices(cloud))["id"], cloud.active("two")["id"]]
    seen: set[str] = set()

    def look() -> None:
        answers = [cloud.request("GET", f"/servers/{server}", user="admin") for server in servers]
        seen.update(answer.json["server"]["status"] for answer in answers if answer.status_code == 200)

    with away(cloud, name, how) as asked:
        for server in servers:
            cloud.delete(server)
        for times in (4, 8):
            cloud.until("asked again and again", lambda times=times: look() or asked(times))
            forward(1.5)
        look()
    for server in servers:
        cloud.until_gone(server)
    assert "ERROR" not in seen
    cloud.assert_clean()


@pytest.mark.parametrize("name", ["api", "cell"])
def test_d4_a_database_that_is_full_for_a_while(
    cloud: ControlPlane, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Nothing can be written for a while, in the middle of builds and deletions."""
    gone = [cloud.active(f"d{number}")["id"] for number in range(2)]
    made = [cloud.create(f"s{number}")["id"] for number in range(3)]
    for server in gone:
        cloud.delete(server)
    database = cloud.parts.cells.api if name == "api" else cloud.parts.cells.cell(CELL).database
    full, refused = threading.Event(), []
    full.set()
    write = Database.write

    @contextlib.contextmanager
    def writing(self: Database) -> Iterator[Any]:
        with write(self) as tx:
            yield tx
            if self is database and full.is_set():
                refused.append(self)
                raise sa.exc.OperationalError("INSERT", {}, sqlite3.OperationalError("database or disk is full"))

    monkeypatch.setattr(Database, "write", writing)
    cloud.until("refused again and again", lambda: len(refused) >= 20)
    full.clear()
    for server in made:
        cloud.until_status(server, "ACTIVE", 60)
    for server in gone:
        cloud.until_gone(server, 60)
    cloud.assert_clean()


@pytest.mark.hosts("h1", "h2", "h3")
@pytest.mark.parametrize(
    ("service", "method", "path", "body"),
    [
        ("neutron", "POST", "/v2.0/ports$", {"NeutronError": {"type": "X", "message": "what you say", "detail": ""}}),
        ("cinder", "PUT", "/attachments/", {"badRequest": {"code": 400, "message": "what you say"}}),
        ("cinder", "POST", "/attachments/.*/action$", {"badRequest": {"code": 400, "message": "what you say"}}),
    ],
)
@pytest.mark.parametrize("status", [400, 403, 409])
def test_a_refusal_reaches_the_user_in_the_services_words_after_one_host(
    cloud: ControlPlane, service: str, method: str, path: str, body: Any, status: int
) -> None:
    fake = getattr(cloud.cloud, service)
    fake.fail(method, path, status=status, body=body, times=1000)
    server = cloud.create(block_device_mapping_v2=devices(cloud))["id"]
    shown = cloud.until_status(server, "ERROR")
    assert shown["fault"]["message"].count("what you say") == 1
    tries = [call for call in fake.calls if call[0] == method and fake.faults[0].path.match(call[1])]
    assert len(tries) == 1
    cloud.delete(server)
    cloud.until_gone(server)
    cloud.assert_clean()


@pytest.mark.parametrize(("status", "code"), [(409, 400), (400, 400), (403, 403), (413, 403), (404, 400)])
def test_o4_what_cinder_refuses_while_a_server_is_accepted(cloud: ControlPlane, status: int, code: int) -> None:
    volume = cloud.cloud.cinder.volume(project=PROJECT, bootable="true")
    device = {"boot_index": 0, "uuid": volume, "source_type": "volume", "destination_type": "volume"}
    body = {"any": {"code": status, "message": f"volume {volume} is busy elsewhere"}}
    cloud.cloud.cinder.fail("POST", "/attachments$", status=status, body=body, times=1000)
    answer = cloud.create(status=code, imageRef="", block_device_mapping_v2=[device])
    message = next(iter(answer.values()))["message"]
    assert volume in message
    assert ("busy elsewhere" in message) is (status != 404)
    assert cloud.cloud.cinder.volumes[volume]["status"] == "available"
