"""Letting go of a volume for an operator's command or a peer's conductor (remove_volume_connection)."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest
from tests.unit.compute.world import World, volume_disk, wait_for

from kilonova.contract import exceptions
from kilonova.db.objects import bdm


class Server:
    """A server with one volume, as built."""

    def __init__(self, world: World, **volume: Any) -> None:
        self.world = world
        world.host()
        ctxt = world.ctxt()
        self.volume = world.cloud.cinder.volume(project="project", **volume)
        asked = world.asked(ctxt, disks=[volume_disk(self.volume)], image_ref="")
        world.cast_build(ctxt, asked)
        self.record = world.until(asked.uuid, vm_state="active", task_state=None)
        world.idle()

    def disconnect(self, delete: bool = False, volume: str | None = None) -> None:
        self.world.client.remove_volume_connection(
            self.world.ctxt(),
            instance=self.record,
            volume_id=volume or self.volume,
            host="h1",
            delete_attachment=delete,
        )

    def save(self, **values: Any) -> None:
        [disk] = self.world.disks(self.record)
        for name, value in values.items():
            setattr(disk, name, value)
        self.world.db.run(bdm.save, self.world.ctxt(), disk)

    @property
    def of_guest(self) -> tuple[str, ...]:
        found = self.world.driver()._guests.get(self.record.uuid)
        assert found is not None
        return found.volumes

    @property
    def attachments(self) -> list[str]:
        return list(self.world.cloud.cinder.attachments)

    def told(self, action: str) -> list[Any]:
        sent = [request for request in self.world.cloud.cinder.requests if request.path.endswith("/action")]
        return [request.body[action] for request in sent if action in (request.body or {})]


@pytest.fixture
def server(world: World) -> Server:
    return Server(world)


@pytest.mark.parametrize("delete", [True, False])
def test_the_attachment_goes_when_it_is_asked_for(server: Server, delete: bool) -> None:
    [attachment] = server.attachments
    server.disconnect(delete)
    assert server.of_guest == ()
    assert server.attachments == ([] if delete else [attachment])
    [disk] = server.world.disks(server.record)
    assert disk.attachment_id == attachment
    # The server is not touched, and nothing is written of what did not change it.
    assert server.world.server(server.record.uuid).vm_state == "active"
    assert server.world.fault(server.record.uuid) is None


def test_older_peers_delete_the_attachment_themselves(server: Server) -> None:
    server.world.set("upgrade_levels", compute="6.2")
    server.disconnect()
    assert server.of_guest == ()
    assert len(server.attachments) == 1


def test_a_repeat_does_no_harm(server: Server) -> None:
    server.disconnect(True)
    server.disconnect(True)
    assert server.attachments == []


def test_a_volume_that_was_never_attached(server: Server) -> None:
    before = server.attachments
    server.disconnect(True, volume="11111111-1111-4111-8111-111111111111")
    assert server.attachments == before
    assert server.of_guest == (server.volume,)


def test_a_server_whose_guest_is_gone(server: Server) -> None:
    server.world.driver()._guests.drop(server.record.uuid)
    server.disconnect(True)
    assert server.attachments == []


def test_a_volume_that_is_not_connected_has_nothing_to_disconnect(server: Server) -> None:
    server.save(connection_info=None)
    server.world.fail("detach_volume")
    server.disconnect(True)
    assert server.attachments == []


def test_a_volume_from_before_attachments(server: Server) -> None:
    server.save(attachment_id=None)
    server.disconnect(True)
    assert server.of_guest == ()
    [told] = server.told("os-terminate_connection")
    assert told["connector"]["host"] == "h1"
    assert len(server.attachments) == 1


@pytest.mark.parametrize(
    "error",
    [
        exceptions.DeviceDetachFailed(device="vda", reason="busy"),
        exceptions.NovaException("the device does not go"),
    ],
)
def test_a_volume_that_stays_is_attached(server: Server, error: exceptions.NovaException) -> None:
    server.world.fail("detach_volume", error)
    with pytest.raises(type(error)):
        server.disconnect(True)
    assert len(server.attachments) == 1
    assert server.told("os-roll_detaching") == [{}]


def test_what_failed_is_what_the_caller_hears(server: Server) -> None:
    server.world.fail("detach_volume", exceptions.DeviceDetachFailed(device="vda", reason="busy"))
    server.world.cloud.cinder.fail("POST", f"/volumes/{server.volume}/action", status=400)
    with pytest.raises(exceptions.DeviceDetachFailed):
        server.disconnect(True)


@pytest.mark.parametrize(
    ("error", "left"),
    [
        # The path on the host is gone: so is the connection.
        (exceptions.DiskNotFound(location="/dev/x"), 0),
        # A kind of volume that this host does not know: as Nova, the attachment stays and nobody is told.
        (exceptions.VolumeDriverNotFound(driver_type="x"), 1),
    ],
)
def test_what_is_not_found(server: Server, error: exceptions.NovaException, left: int) -> None:
    server.world.fail("detach_volume", error)
    server.disconnect(True)
    assert len(server.attachments) == left


def test_cinder_that_does_not_let_go_is_reported(server: Server) -> None:
    server.world.cloud.cinder.fail("DELETE", "/attachments/", status=400)
    with pytest.raises(exceptions.InvalidInput):
        server.disconnect(True)
    assert server.of_guest == ()


def test_it_takes_its_turn(server: Server) -> None:
    """Not while the guest is being started, for one."""
    agent, began, go = server.world.hosts["h1"].agent, threading.Event(), threading.Event()
    agent.lanes.submit(server.record.uuid, lambda turn: (began.set(), go.wait(10)))
    assert began.wait(10)
    asked = threading.Thread(target=server.disconnect, args=(True,))
    asked.start()
    assert wait_for(lambda: agent.lanes.depth == 2)
    assert server.of_guest == (server.volume,)
    go.set()
    asked.join(10)
    assert server.attachments == []


def test_a_volume_that_others_may_have_too_is_marked(world: World) -> None:
    server = Server(world, multiattach=True)
    [disk] = world.disks(server.record)
    assert json.loads(disk.connection_info)["multiattach"] is True


def test_start_makes_the_guest_with_what_is_recorded_now(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    world = server.world
    world.cast("stop_instance", server.record, "powering-off", clean_shutdown=True)
    stopped = world.until(server.record.uuid, vm_state="stopped", task_state=None)
    server.disconnect()
    assert server.of_guest == ()
    fresh = {"driver_volume_type": "local", "data": {"device_path": "/dev/fresh"}}
    server.save(connection_info=json.dumps(fresh))
    driver, specs = world.driver(), []
    power_on = driver.power_on
    monkeypatch.setattr(driver, "power_on", lambda ctxt, spec: (specs.append(spec), power_on(ctxt, spec)))
    world.cast("start_instance", stopped, "powering-on")
    world.until(server.record.uuid, vm_state="active", task_state=None)
    [volume] = specs[0].block_devices.volumes
    assert volume.connection_info == fresh
    assert server.of_guest == (server.volume,)
