"""What a peer may ask of our host and it does not have: errors that it understands, and nothing left behind."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from tests.unit.compute.world import World, wait_for

from kilonova.clients.placement.client import allocation_body
from kilonova.compute import refusal
from kilonova.compute.operations import OPERATIONS
from kilonova.contract import exceptions, objects
from kilonova.contract.rpc import compute as table
from kilonova.db.objects import instance as instances
from kilonova.db.objects import migration as migrations

BUILT = {
    *OPERATIONS,
    "external_instance_event",
    "get_console_output",
    "get_host_uptime",
    "remove_volume_connection",
    "set_host_enabled",
}


def given_back(world: World, server: objects.Instance, method: str) -> objects.Instance:
    assert wait_for(lambda: world.fault(server.uuid) is not None)
    world.idle()
    assert method in world.fault(server.uuid).message + world.fault(server.uuid).details
    return world.until(server.uuid, vm_state="active", task_state=None)


def test_who_waits_gets_an_error_that_it_understands(world: World) -> None:
    world.host()
    server = world.built()
    with pytest.raises(NotImplementedError, match="get_vnc_console"):
        world.client.get_vnc_console(world.ctxt(), instance=server, console_type="novnc")
    with pytest.raises(exceptions.AttachInterfaceNotSupported):
        world.client.attach_interface(
            world.ctxt(), instance=server, network_id=None, port_id=None, requested_ip=None, tag=None
        )
    asked = {"block_migration": False, "disk_over_commit": False, "migration": None, "limits": None}
    with pytest.raises(exceptions.MigrationPreCheckError, match="check_can_live_migrate_destination"):
        world.client.check_can_live_migrate_destination(world.ctxt(), instance=server, destination="h1", **asked)
    world.idle()
    assert world.fault(server.uuid) is None


def test_expected_exceptions_are_among_the_answers() -> None:
    """Where the interface names what is ordinary, what we say is ordinary."""
    args = {"instance": objects.Instance(uuid="5f2b1d7e-1f4e-4a3c-8a57-0d3f1f1b2c3d")}
    for served in table.API.served:
        method = table.API.by_name.get(served.name)
        if "NotImplementedError" in served.expected and method is not None and method.call and method.name not in BUILT:
            assert type(refusal.answer(method.name, args)) is NotImplementedError, method.name


def test_a_password_that_cannot_be_set_leaves_the_server_free(world: World) -> None:
    world.host()
    server = world.built()
    server.task_state = "updating_password"
    world.db.run(instances.save, world.ctxt(), server)
    with pytest.raises(NotImplementedError):
        world.client.set_admin_password(world.ctxt(), instance=server, new_pass="x")
    given_back(world, server, "set_admin_password")


def test_the_image_of_a_snapshot_goes(world: World) -> None:
    world.host()
    server = world.built()
    image = world.cloud.glance.image()
    world.cast("snapshot_instance", server, "image_snapshot_pending", image_id=image)
    given_back(world, server, "snapshot_instance")
    assert image not in world.cloud.glance.images


def test_a_refusal_that_a_killed_agent_did_not_come_to_is_made_up_for(world: World) -> None:
    host = world.host()
    server = world.built()
    image, hold = world.cloud.glance.image(), threading.Event()
    host.agent.lanes.submit(server.uuid, lambda turn: hold.wait(20))
    world.cast("snapshot_instance", server, "image_snapshot_pending", image_id=image)
    assert wait_for(lambda: host.agent.journal.open())
    world.kill()
    hold.set()
    world.host()
    given_back(world, server, "snapshot_instance")
    assert image not in world.cloud.glance.images


def test_a_volume_that_stays_is_in_use(world: World) -> None:
    world.host()
    server = world.built()
    asked: list[Any] = []
    world.clients.cinder.volume_action = lambda *args: asked.append(args[1:])  # type: ignore[method-assign]
    world.cast("detach_volume", server, None, volume_id="v", attachment_id=None)
    given_back(world, server, "detach_volume")
    assert asked == [("v", "os-roll_detaching", {})]


def test_a_server_that_is_not_rebuilt_has_its_image(world: World) -> None:
    world.host()
    server = world.built()
    before = server.image_ref
    server.image_ref = "new"
    names = [a.name for a in table.API.by_name["rebuild_instance"].arguments]
    args = dict.fromkeys(names) | {"orig_image_ref": before, "orig_sys_metadata": {"a": "b"}, "host": "h1"}
    args.pop("instance")
    world.cast("rebuild_instance", server, "rebuilding", **args)
    assert given_back(world, server, "rebuild_instance").image_ref == before


def test_a_resize_that_is_refused_gives_its_claim_back(world: World) -> None:
    world.host()
    server = world.built()
    placement, ctxt = world.clients.placement, world.ctxt()
    held = placement.allocations_get(ctxt, server.uuid)
    migration = objects.Migration(instance_uuid=server.uuid, status="pre-migrating", migration_type="resize")
    world.db.run(migrations.create, ctxt, migration)
    owner = (held.project_id, held.user_id)
    bigger = {p: {"resources": {**r, "VCPU": 2}} for p, r in held.resources().items()}
    placement.allocations_move(
        ctxt,
        {
            migration.uuid: allocation_body(held.allocations, *owner, None),
            server.uuid: allocation_body(bigger, *owner, held.generation),
        },
    )
    names = [a.name for a in table.API.by_name["prep_resize"].arguments]
    args = dict.fromkeys(names) | {"migration": migration, "host": "h1"}
    args.pop("instance")
    world.cast("prep_resize", server, "resize_prep", **args)
    given_back(world, server, "prep_resize")
    assert placement.allocations_get(ctxt, server.uuid).resources() == held.resources()
    assert placement.allocations_get(ctxt, migration.uuid).allocations == {}
    assert world.db.query(migrations.get_by_id, ctxt, migration.id).status == "error"
