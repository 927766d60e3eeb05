"""What a host counts for servers that are between two hosts, as a peer's resize leaves them."""

from __future__ import annotations

from typing import Any

import pytest
from tests.fakes.guests import flavor
from tests.unit.compute.world import World

from kilonova.contract import context, objects
from kilonova.db.objects import instance as instances
from kilonova.db.objects import migration as migrations

SMALL, BIG = flavor(id=1, memory_mb=192), flavor(id=2, flavorid="2", memory_mb=512, vcpus=2)
RESERVED = 512


def moved(world: World, source: str, target: str, **values: Any) -> objects.Instance:
    """A server that was resized from SMALL to BIG and waits for its user's word, with the migration of it."""
    states = {"vm_state": "resized", "task_state": None}
    sizes = {"flavor": BIG, "old_flavor": SMALL, "new_flavor": BIG, "instance_type_id": 2}
    made = world.asked(world.ctxt(), "", **{**states, **sizes, **values})
    made.host = made.node = source if made.task_state else target
    made.compute_id = None
    world.db.run(instances.save, world.ctxt(), made)
    migration = objects.Migration(
        instance_uuid=made.uuid,
        migration_type="resize",
        status="finished",
        old_instance_type_id=1,
        new_instance_type_id=2,
        source_compute=source,
        source_node=source,
        dest_compute=target,
        dest_node=target,
    )
    world.db.run(migrations.create, world.ctxt(), migration)
    return made


def counted(world: World, host: str) -> tuple[int, int, int]:
    """Memory, processors and guests in the record of a host's node."""
    service = world.host(host)
    service.agent.tracker.audit(context.admin())
    [node] = service.agent.store.nodes(context.admin(), service.agent.driver.nodes().values())
    return node.memory_mb_used - RESERVED, node.vcpus_used, node.running_vms


def test_a_server_that_may_go_back_keeps_its_room(world: World) -> None:
    moved(world, "h1", "h2")
    assert counted(world, "h1") == (192, 1, 0)
    assert counted(world, "h2") == (512, 2, 1)


def test_a_server_that_is_coming_has_its_room(world: World) -> None:
    moved(world, "h2", "h1", flavor=SMALL, instance_type_id=1, vm_state="active", task_state="resize_migrating")
    assert counted(world, "h1") == (512, 2, 0)
    assert counted(world, "h2") == (192, 1, 1)


@pytest.mark.parametrize(("resized", "other"), [(True, 192), (False, 512)])
def test_on_one_host_both_sizes_are_held(world: World, resized: bool, other: int) -> None:
    sizes = (
        {} if resized else {"flavor": SMALL, "instance_type_id": 1, "task_state": "resize_prep", "vm_state": "active"}
    )
    moved(world, "h1", "h1", **sizes)
    assert counted(world, "h1")[0] == (512 if resized else 192) + other


def test_what_a_deleted_or_settled_server_left_is_not_held(world: World) -> None:
    moved(world, "h1", "h2", vm_state="active")
    gone = moved(world, "h1", "h2")
    service = world.host("h1")
    for held in (192, 0):
        service.agent.tracker.audit(context.admin())
        assert sum(use.memory_mb for use in service.agent.tracker.nodes["h1"].moves.values()) == held
        world.db.run(lambda tx: tx.exec_driver_sql("UPDATE instances SET deleted = id WHERE uuid = ?", (gone.uuid,)))


def test_only_the_newest_migration_counts(world: World) -> None:
    made = moved(world, "h1", "h2")
    again = objects.Migration(
        instance_uuid=made.uuid, migration_type="resize", status="finished", old_instance_type_id=1,
        new_instance_type_id=2, source_compute="h3", source_node="h3", dest_compute="h1", dest_node="h1",
    )  # fmt: skip
    world.db.run(migrations.create, world.ctxt(), again)
    world.db.run(
        lambda tx: tx.exec_driver_sql("UPDATE migrations SET created_at = '2020-01-01' WHERE dest_compute = 'h1'")
    )
    assert counted(world, "h1") == (192, 1, 0)
