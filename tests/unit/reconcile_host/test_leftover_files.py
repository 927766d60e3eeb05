"""Files of deleted servers that are still on their host."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.compute.world import World, wait_for

from kilonova.contract import objects
from kilonova.db.objects import instance as instances
from kilonova.reconcile.host import loops


class Disks:
    """The driver's `destroy`, which fails as often as it is told to."""

    def __init__(self, failures: int = 0) -> None:
        self.failures = failures
        self.destroyed: list[str] = []

    def __call__(self, ctxt: Any, instance: objects.Instance, network_info: Any, block_devices: Any) -> None:
        if self.failures:
            self.failures -= 1
            raise OSError("the disk is busy")
        self.destroyed.append(instance.uuid)


@pytest.fixture
def deleted(world: World) -> str:
    """A server that was deleted while its host was away; its guest is gone."""
    world.set("kilonova", reconcile_grace=0.0)
    host = world.host(loops=loops.make)
    server = world.built()
    world.driver()._guests.drop(server.uuid)
    world.db.run(instances.destroy, world.ctxt(), world.server(server.uuid))
    host.agent.tracker.forget(server.uuid)
    return str(server.uuid)


def passes(world: World, times: int) -> Any:
    loop = next(each for each in world.hosts["h1"]._loops if each.name == "leftover_files")
    for _ in range(times):
        report = loop.run()  # type: ignore[attr-defined]
    return report


def record(world: World, uuid: str) -> objects.Instance:
    return world.db.query(instances.load, uuid, ("system_metadata",), read_deleted=True)


def test_files_are_removed_once(world: World, deleted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    disks = Disks()
    monkeypatch.setattr(world.driver(), "destroy", disks)
    assert passes(world, 1).repaired == 0
    assert passes(world, 1).repaired == 1
    assert disks.destroyed == [deleted]
    assert record(world, deleted).cleaned
    assert record(world, deleted).system_metadata["clean_attempts"] == "1"
    assert passes(world, 2).seen == []


def test_a_failure_is_tried_again_until_it_was_often_enough(
    world: World, deleted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    disks = Disks(failures=4)
    monkeypatch.setattr(world.driver(), "destroy", disks)
    assert passes(world, 2).failed == 1
    assert record(world, deleted).system_metadata["clean_attempts"] == "1"
    assert not record(world, deleted).cleaned
    passes(world, 3)
    assert passes(world, 1).repaired == 1
    assert record(world, deleted).system_metadata["clean_attempts"] == "5"


def test_what_was_tried_often_enough_is_left(world: World, deleted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    disks = Disks(failures=9)
    monkeypatch.setattr(world.driver(), "destroy", disks)
    passes(world, 9)
    assert disks.failures == 4
    assert passes(world, 1).seen == []


def test_a_guest_that_runs_is_left_alone(world: World) -> None:
    world.set("kilonova", reconcile_grace=0.0)
    world.host(loops=loops.make)
    server = world.built()
    world.db.run(instances.destroy, world.ctxt(), world.server(server.uuid))
    assert passes(world, 3).seen == []
    assert server.uuid in world.driver().guests()


def test_a_server_that_this_host_deleted_left_nothing(world: World) -> None:
    world.set("kilonova", reconcile_grace=0.0)
    world.host(loops=loops.make)
    server = world.built()
    world.cast("terminate_instance", server, "deleting", bdms=world.disks(server))
    wait_for(lambda: world.server(server.uuid) is None)
    assert record(world, server.uuid).cleaned
    assert passes(world, 2).seen == []
