"""[kilonova] strict_hosts: what the account of one host could do to others and does no more, and what hosts need."""

from __future__ import annotations

import ast
import logging
import pathlib
from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa
from tests.unit.compute.world import World, volume_disk, wait_for

import kilonova
from kilonova.compute.store import RpcStore
from kilonova.conductor.objects import strict, table
from kilonova.contract import context, exceptions, objects
from kilonova.db.api import cell_mappings
from kilonova.db.cell.tables import BLOCK_DEVICE_MAPPING, COMPUTE_NODES, INSTANCES, SERVICES
from kilonova.db.objects import bdm, migration
from kilonova.db.objects import instance as instances
from kilonova.wire.rpc.clients import ConductorClient

SECRET = "mysql://nova:secret@db/nova"
PORT = "1b7c6f2e-6d6f-4a58-8a44-0f4f2c1c9a55"
LOGGER = "kilonova.conductor.objects.strict"


class Intruder:
    """Whoever took over h1 and has its account on the bus; `theirs` runs on h2, `own` on h1."""

    def __init__(self, world: World) -> None:
        self.world = world
        for name in ("h1", "h2"):
            world.host(name)
        self.own, self.theirs = world.built("h1"), world.built("h2")
        self.store = RpcStore(world.bus, "h1", patience=0.0)
        self.ctxt = context.admin()
        cell = {"uuid": "c5f0a1a8-7d0a-4b7e-9a46-7b1d1f8d0a11", "name": "c", "transport_url": "rabbit://"}
        with world.cells.api.write() as tx:
            cell_mappings.cell_mapping_create(tx, {**cell, "database_connection": SECRET, "disabled": False})

    def call(self, name: str, method: str, *args: Any, **kwargs: Any) -> Any:
        return self.store.call(self.ctxt, name, method, *args, **kwargs)

    def act(self, obj: Any, method: str = "save", *args: Any, **kwargs: Any) -> Any:
        return self.store.act(self.ctxt, obj, method, *args, **kwargs)

    def known(self, kind: Any, number: int, **fields: Any) -> Any:
        """An object as if it had been read, with these fields changed."""
        made = kind(id=number)
        made.obj_reset_changes()
        for name, value in fields.items():
            setattr(made, name, value)
        return made

    def one(self, column: Any, **where: Any) -> Any:
        with self.world.db.read() as tx:
            table = column.table
            return tx.execute(sa.select(column).where(*(table.c[n] == v for n, v in where.items()))).scalars().first()

    def disk(self, server: objects.Instance) -> objects.BlockDeviceMapping:
        return self.world.disks(server).objects[0]

    def service(self, host: str) -> int:
        return int(self.one(SERVICES.c.id, host=host, binary="nova-compute"))

    def move(self, server: objects.Instance, status: str, **ends: str) -> objects.Migration:
        made = objects.Migration(
            instance_uuid=server.uuid, status=status, migration_type="evacuation", **{"source_compute": "h2", **ends}
        )
        self.world.db.run(migration.create, self.ctxt, made)
        return made


def rewrite(it: Intruder) -> None:
    it.theirs.display_name = "taken over"
    it.act(it.theirs)


def rewrite_metadata(it: Intruder) -> None:
    it.theirs.system_metadata = {**it.theirs.system_metadata, "image_id": "another"}
    it.act(it.theirs)


def move_here(it: Intruder) -> None:
    it.theirs.host = "h1"
    it.act(it.theirs)


def move_away(it: Intruder) -> None:
    it.own.host = "h2"
    it.act(it.own)


def name_anothers_node(it: Intruder) -> None:
    it.own.node, it.own.compute_id = "h2", it.one(COMPUTE_NODES.c.id, host="h2")
    it.act(it.own)


def destroy(it: Intruder) -> None:
    it.act(it.theirs, "destroy")


def erase_own(it: Intruder) -> None:
    it.act(it.own, "destroy", hard_delete=True)


def cache(it: Intruder) -> None:
    it.act(objects.InstanceInfoCache(instance_uuid=it.theirs.uuid, network_info=[]))


def cache_inside_own(it: Intruder) -> None:
    it.own.info_cache = objects.InstanceInfoCache(instance_uuid=it.theirs.uuid, network_info=[])
    it.act(it.own)


def disk(it: Intruder) -> None:
    it.act(it.known(objects.BlockDeviceMapping, it.disk(it.theirs).id, connection_info="{}"))


def give_disk(it: Intruder) -> None:
    it.act(it.known(objects.BlockDeviceMapping, it.disk(it.own).id, instance_uuid=it.theirs.uuid))


def take_disk(it: Intruder) -> None:
    it.act(it.known(objects.BlockDeviceMapping, it.disk(it.theirs).id, instance_uuid=it.own.uuid))


def create_disk(it: Intruder) -> None:
    made = volume_disk("9b6c2c3e-60a4-4a4f-9b58-0f2f7f9b2a11", instance_uuid=it.theirs.uuid)
    it.act(made, "create")


def forget_interfaces(it: Intruder) -> None:
    it.call("VirtualInterface", "delete_by_instance_uuid", it.theirs.uuid)


def interface(it: Intruder) -> None:
    it.act(objects.VirtualInterface(address="fa:16:3e:00:00:01", uuid=PORT, instance_uuid=it.theirs.uuid), "create")


def fault(it: Intruder) -> None:
    made = objects.InstanceFault(instance_uuid=it.theirs.uuid, host="h1", code=500, message="m", details="")
    it.act(made, "create")


def fault_of_another(it: Intruder) -> None:
    made = objects.InstanceFault(instance_uuid=it.own.uuid, host="h2", code=500, message="m", details="")
    it.act(made, "create")


def event(it: Intruder) -> None:
    it.call("InstanceActionEvent", "event_start", it.theirs.uuid, "compute_stop", want_result=False, host="h1")


def end_event(it: Intruder) -> None:
    name = "compute__do_build_and_run_instance"
    it.call("InstanceActionEvent", "event_finish_with_failure", it.theirs.uuid, name, want_result=False, exc_val="x")


def action(it: Intruder) -> None:
    it.call("InstanceAction", "action_start", it.own.uuid, "create", want_result=False)


def migrate(it: Intruder) -> None:
    it.act(objects.Migration(instance_uuid=it.theirs.uuid, dest_compute="h1", status="running"), "create")


def end_migration(it: Intruder) -> None:
    it.act(it.known(objects.Migration, it.move(it.theirs, "running", dest_compute="h3").id, status="error"))


def turn_migration(it: Intruder) -> None:
    it.act(it.known(objects.Migration, it.move(it.theirs, "running", dest_compute="h1").id, source_compute="h1"))


def force_down(it: Intruder) -> None:
    it.act(it.known(objects.Service, it.service("h2"), forced_down=True))


def seem_alive(it: Intruder) -> None:
    it.act(it.known(objects.Service, it.service("h2"), report_count=99999))


def enable_itself(it: Intruder) -> None:
    it.act(it.known(objects.Service, it.service("h1"), disabled=False))


def remove_service(it: Intruder) -> None:
    it.act(it.known(objects.Service, it.service("h2"), host="h2", binary="nova-compute"), "destroy")


def make_service(it: Intruder) -> None:
    it.act(objects.Service(host="h9", binary="nova-compute", topic="compute", report_count=0, version=1), "create")


def make_conductor(it: Intruder) -> None:
    it.act(objects.Service(host="h1", binary="nova-conductor", topic="conductor", report_count=0, version=1), "create")


def node(it: Intruder) -> None:
    it.act(it.known(objects.ComputeNode, it.one(COMPUTE_NODES.c.id, host="h2"), vcpus=0))


def give_node(it: Intruder) -> None:
    it.act(it.known(objects.ComputeNode, it.one(COMPUTE_NODES.c.id, host="h1"), host="h2"))


def make_node(it: Intruder) -> None:
    made = objects.ComputeNode(
        uuid="5e0ad0ee-6a35-47f3-9f7c-6f5c6a8d4c1b", host="h2", service_id=it.service("h2"), hypervisor_hostname="more",
        vcpus=1, memory_mb=1, local_gb=1, vcpus_used=0, memory_mb_used=0, local_gb_used=0, hypervisor_type="fake",
        hypervisor_version=1, cpu_info="",
    )  # fmt: skip
    it.act(made, "create")


def make_flavor(it: Intruder) -> None:
    made = objects.Flavor(
        name="mine", flavorid="mine", memory_mb=1, vcpus=1, root_gb=0, ephemeral_gb=0, swap=0, rxtx_factor=1.0,
        is_public=True, disabled=False, extra_specs={}, projects=[],
    )  # fmt: skip
    it.act(made, "create")


def make_key(it: Intruder) -> None:
    it.act(
        objects.KeyPair(user_id="user", name="mine", type="ssh", public_key="ssh-rsa AAAA", fingerprint="f"), "create"
    )


def make_quota(it: Intruder) -> None:
    it.call("Quotas", "create_limit", "project", "cores", 1_000_000)


def read_cells(it: Intruder) -> None:
    found = it.call("CellMappingList", "get_all")
    assert found.objects[0].database_connection == SECRET


def read(it: Intruder) -> None:
    it.call("Instance", "get_by_uuid", it.theirs.uuid, expected_attrs=["system_metadata"])


def list_of_another(it: Intruder) -> None:
    it.call("InstanceList", "get_by_host", "h2", expected_attrs=[])


def list_of_a_project(it: Intruder) -> None:
    it.call("InstanceList", "get_by_filters", {"project_id": it.theirs.project_id}, expected_attrs=[])


def list_everything(it: Intruder) -> None:
    it.call("InstanceList", "get_all", expected_attrs=[])


def list_parts_of_another(it: Intruder) -> None:
    it.call("InstanceList", "get_by_filters", {"uuid": [it.own.uuid, it.theirs.uuid]})


def list_disks(it: Intruder) -> None:
    it.call("BlockDeviceMappingList", "get_by_instance_uuids", [it.own.uuid, it.theirs.uuid])


def list_services(it: Intruder) -> None:
    it.call("ServiceList", "get_all")


ATTACKS = (
    rewrite, rewrite_metadata, move_here, move_away, name_anothers_node, destroy, erase_own, cache, cache_inside_own,
    disk, give_disk, take_disk, create_disk, forget_interfaces, interface, fault, fault_of_another, event, end_event,
    action, migrate, end_migration, turn_migration, force_down, seem_alive, enable_itself, remove_service, make_service,
    make_conductor, node, give_node, make_node, make_flavor, make_key, make_quota, read_cells, read, list_of_another,
    list_of_a_project, list_everything, list_parts_of_another, list_disks, list_services,
)  # fmt: skip


@pytest.fixture
def intruder(world: World) -> Intruder:
    return Intruder(world)


def rows(world: World) -> dict[str, Any]:
    """What could have been changed, but for what hosts write by themselves all the time."""
    found = {}
    with world.db.read() as tx:
        for table in (INSTANCES, BLOCK_DEVICE_MAPPING, SERVICES):
            columns = [c for c in table.c if c.name not in ("updated_at", "report_count", "last_seen_up")]
            found[table.name] = sorted(map(str, tx.execute(sa.select(*columns)).all()))
    return found


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.__name__)
def test_what_an_account_of_a_host_could_do(
    intruder: Intruder, caplog: pytest.LogCaptureFixture, attack: Callable[[Intruder], None]
) -> None:
    world = intruder.world
    before = rows(world)
    world.set("kilonova", strict_hosts=True)
    with caplog.at_level(logging.WARNING, LOGGER), pytest.raises(exceptions.Forbidden):
        attack(intruder)
    told = [record.getMessage() for record in caplog.records if record.name == LOGGER]
    assert len(told) == 1
    assert told[0].startswith("host 'h1' is refused ")
    assert rows(world) == before
    # As it is without, where Nova's hosts are to be served too.
    world.set("kilonova", strict_hosts=False)
    fresh(intruder)
    attack(intruder)


def fresh(it: Intruder) -> None:
    """Objects without what the first try changed in them."""
    attrs = ("info_cache", "system_metadata", "flavor", "metadata")
    it.own, it.theirs = (it.world.db.query(instances.load, one.uuid, attrs) for one in (it.own, it.theirs))


def test_who_names_no_host_is_refused_everything(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """As a host of Nova's, which does not know the key."""
    world.host()
    asked = ("Service", "get_by_host_and_binary", objects.manifest("Service"), ["h1", "nova-compute"], {})
    client = ConductorClient(world.bus)
    assert client.object_class_action_versions(context.admin(), *asked).host == "h1"
    world.set("kilonova", strict_hosts=True)
    with caplog.at_level(logging.WARNING, LOGGER), pytest.raises(exceptions.PolicyNotAuthorized):
        client.object_class_action_versions(context.admin(), *asked)
    assert "a sender that names no host, as hosts of Nova's" in caplog.text


def test_what_the_record_objects_to_is_said_first(intruder: Intruder) -> None:
    """A host that comes late learns that somebody else has the server, and leaves it alone."""
    intruder.world.set("kilonova", strict_hosts=True)
    intruder.theirs.task_state = "networking"
    with pytest.raises(exceptions.UnexpectedTaskStateError):
        intruder.act(intruder.theirs, "save", expected_task_state=["scheduling", None][:1])


def test_both_ends_of_a_move_have_the_server_while_it_lasts(intruder: Intruder) -> None:
    it, db = intruder, intruder.world.db
    it.world.set("kilonova", strict_hosts=True)
    move = it.move(it.theirs, "running", dest_compute="h1")
    it.theirs.host, it.theirs.node, it.theirs.compute_id = "h1", "h1", it.one(COMPUTE_NODES.c.id, host="h1")
    it.act(it.theirs)
    store = RpcStore(it.world.bus, "h2", patience=0.0)
    store.act(it.ctxt, it.known(objects.Migration, move.id, status="done"), "save")
    assert store.instance(it.ctxt, it.theirs.uuid, ()).host == "h1"
    assert db.query(bdm.get_by_instance_uuid, it.ctxt, it.theirs.uuid).objects
    it.theirs.display_name = "still mine"
    with pytest.raises(exceptions.Forbidden):
        store.save(it.ctxt, it.theirs)
    with pytest.raises(exceptions.Forbidden):
        store.destroy(it.ctxt, it.theirs)


def test_a_move_without_a_destination_may_be_any_hosts(intruder: Intruder) -> None:
    """As a conductor of Nova's leaves it while it asks the destination, which gives the server back."""
    it = intruder
    it.world.set("kilonova", strict_hosts=True)
    move = it.move(it.theirs, "pre-migrating")
    it.act(it.known(objects.Migration, move.id, status="error"))
    it.theirs.task_state = None
    it.act(it.theirs)


def test_a_build_that_comes_to_the_wrong_host_leaves_the_server_alone(
    intruder: Intruder, caplog: pytest.LogCaptureFixture
) -> None:
    world, server = intruder.world, intruder.theirs
    world.set("kilonova", strict_hosts=True)
    ctxt, held = world.ctxt(), world.leftovers(server.uuid)
    world.act(ctxt, server, "create")
    world.cast_build(ctxt, server, "h1")
    assert wait_for(lambda: "is not ours to build" in caplog.text)
    world.idle()
    assert world.leftovers(server.uuid) == held
    assert (world.until(server.uuid, host="h2").vm_state, world.fault(server.uuid)) == ("active", None)


def test_members_of_a_group_are_found_where_they_are(intruder: Intruder) -> None:
    intruder.world.set("kilonova", strict_hosts=True)
    [found] = intruder.store.instances_by_uuid(intruder.ctxt, [intruder.theirs.uuid])
    assert (found.host, found.vm_state) == ("h2", "active")


def test_every_rule_is_of_a_method_that_is_served() -> None:
    for rules, served in ((strict.METHODS, table.METHODS), (strict.CLASS_METHODS, table.CLASS_METHODS)):
        assert {(n, m) for n in rules for m in rules[n]} <= {(n, m) for n in served for m in served[n]}


def test_every_class_method_that_hosts_call_has_a_rule_and_no_other() -> None:
    root = pathlib.Path(kilonova.__file__).parent
    rooms = ("compute", "reconcile/host", "virt", "cmd/assembly.py")
    files = [f for room in rooms for f in ([root / room] if room.endswith(".py") else (root / room).rglob("*.py"))]
    called = set()
    for each in (n for f in files for n in ast.walk(ast.parse(f.read_text()))):
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) and each.func.attr == "call":
            said = [arg.value for arg in each.args[1:3] if isinstance(arg, ast.Constant)]
            if len(said) == 2 and said[0] in table.CLASS_METHODS:
                called.add(tuple(said))
    assert called == {(name, method) for name in strict.CLASS_METHODS for method in strict.CLASS_METHODS[name]}
