"""The whole service over the in-memory bus and real databases: hosts, groups and statements counted."""

from __future__ import annotations

import json
import pathlib
import shutil
import uuid

import pytest
import sqlalchemy as sa
from tests import fakes
from tests.unit.scheduler import make

from kilonova import conf as options
from kilonova.base import clock
from kilonova.contract import context, exceptions, objects
from kilonova.db.api import tables as api
from kilonova.db.cell import tables as cell
from kilonova.db.cells import CELL0_UUID, Cells
from kilonova.db.engine import Database
from kilonova.db.migrations import sync
from kilonova.scheduler import discovery, groups
from kilonova.scheduler.service import Service, image_properties
from kilonova.wire.rpc.bus import Bus
from kilonova.wire.rpc.clients import SchedulerClient

CTXT = context.RequestContext(user_id="user", project_id=make.PROJECT)


@pytest.fixture(scope="module")
def templates(tmp_path_factory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("templates")
    for name, fill in (("api", sync.sync_api), ("cell", sync.sync_main)):
        database = Database(f"sqlite:///{folder}/{name}.db")
        fill(database)
        database.dispose()
    return folder


class World:
    """One cell with hosts, an API database, the service and a client on one bus."""

    def __init__(self, folder: pathlib.Path, templates: pathlib.Path) -> None:
        for name in ("api", "cell", "cell0"):
            shutil.copy(templates / f"{name.removesuffix('0')}.db", folder / f"{name}.db")
        self.conf = options.load([])
        self.conf.set_override("connection", f"sqlite:///{folder}/api.db", "api_database")
        self.conf.set_override("connection", f"sqlite:///{folder}/cell.db", "database")
        self.cells = Cells(self.conf)
        with self.cells.api.write() as tx:
            for at, (cell_uuid, name) in enumerate([(CELL0_UUID, "cell0"), (make.CELL, "cell")], start=1):
                url = f"sqlite:///{folder}/{name}.db"
                row = {"id": at, "uuid": cell_uuid, "name": name, "transport_url": "none:///",
                       "database_connection": url, "disabled": False}  # fmt: skip
                tx.execute(api.CELL_MAPPINGS.insert().values(row))
        self.cloud = fakes.Cloud()
        self.bus = Bus(self.conf, f"fake://{uuid.uuid4().hex}")
        self.service = Service(self.conf, self.cells, self.bus, self.cloud.clients, "s1")
        self.client = SchedulerClient(self.bus)

    @property
    def cell(self) -> Database:
        return self.cells.cell(make.CELL).database

    def host(self, name: str) -> None:
        row = make.node_row(name)
        now = clock.naive_now()
        row |= {"created_at": now, "memory_mb_used": 0, "mapped": 1}
        with self.cell.write() as tx:
            tx.execute(cell.COMPUTE_NODES.insert().values(row))
            service = {"uuid": str(uuid.uuid4()), "binary": "nova-compute", "topic": "compute", "report_count": 1}
            tx.execute(cell.SERVICES.insert().values(make.service_row(name) | service))
        self.cloud.placement.host(name, provider=row["uuid"])

    def server(self, server: str, host: str | None, group: int | None = None) -> None:
        with self.cell.write() as tx:
            values = {"uuid": server, "host": host, "deleted": 0, "updated_at": clock.naive_now()}
            tx.execute(cell.INSTANCES.insert().values(values))
        with self.cells.api.write() as tx:
            mapping = {"instance_uuid": server, "cell_id": 2, "project_id": make.PROJECT, "queued_for_delete": False}
            tx.execute(api.INSTANCE_MAPPINGS.insert().values(mapping))
            if group is not None:
                tx.execute(api.INSTANCE_GROUP_MEMBER.insert().values(group_id=group, instance_uuid=server))

    def group(self, policy: str, rules: dict | None = None) -> int:
        with self.cells.api.write() as tx:
            made = tx.execute(api.INSTANCE_GROUPS.insert().values(uuid=str(uuid.uuid4()), project_id=make.PROJECT))
            number = made.inserted_primary_key[0]
            row = {"group_id": number, "policy": policy, "rules": json.dumps(rules) if rules else None}
            tx.execute(api.INSTANCE_GROUP_POLICY.insert().values(row))
        return number


@pytest.fixture
def world(tmp_path, templates):
    made = World(tmp_path, templates)
    made.service.start()
    yield made
    made.service.stop()
    made.service.wait()
    made.bus.close()
    made.cells.dispose()


def select(world, spec, **more):
    return world.client.select_destinations(
        CTXT, spec_obj=spec, instance_uuids=[spec.instance_uuid], return_objects=True, return_alternates=True, **more
    )


def statements(database: Database):
    """What is sent to a database from now on, transaction brackets left out."""
    seen: list[str] = []

    def note(connection, cursor, text, *more):
        if not text.startswith("BEGIN"):
            seen.append(text)

    sa.event.listen(database.engine, "before_cursor_execute", note)
    return seen


def test_over_the_bus(world):
    world.host("h1")
    world.host("h2")
    [[chosen, alternate]] = select(world, make.spec())
    assert {chosen.service_host, alternate.service_host} == {"h1", "h2"}
    assert isinstance(chosen, objects.Selection)


def test_no_valid_host_crosses_the_bus(world):
    with pytest.raises(exceptions.NoValidHost, match="no host offers") as caught:
        select(world, make.spec())
    assert caught.value.kwargs["explanation"]["candidates"] == 0


def test_requests_between_refreshes_read_no_database(world):
    world.host("h1")
    select(world, make.spec())
    world.service.snapshot._spacing = 60.0
    seen = statements(world.cell), statements(world.cells.api)
    for _ in range(3):
        select(world, make.spec())
    assert seen == ([], [])


def test_a_refresh_is_three_statements_a_cell(world):
    for n in range(5):
        world.host(f"h{n}")
    world.service.snapshot.refresh(force=True)
    seen = statements(world.cell)
    world.service.snapshot.refresh(force=True)
    assert len(seen) == 3


def test_changes_in_the_database_are_seen(world):
    world.host("h1")
    world.service.snapshot._spacing = 0.0
    select(world, make.spec())
    with world.cell.write() as tx:
        tx.execute(cell.SERVICES.update().values(disabled=True, disabled_reason="repair"))
    with pytest.raises(exceptions.NoValidHost, match="ComputeFilter left 0 of 1"):
        select(world, make.spec())


def test_group_of_a_server(world):
    world.host("h1")
    number = world.group("anti-affinity", {"max_server_per_host": "2"})
    member, mine = str(uuid.uuid4()), str(uuid.uuid4())
    world.server(member, "h1", number)
    world.server(mine, None, number)
    spec = make.spec(instance_uuid=mine, scheduler_hints={"group": ["g"]})
    groups.of_request(world.cells, spec, mine)
    seen = statements(world.cells.api), statements(world.cell)
    found = groups.of_request(world.cells, spec, mine)
    assert (found.policy, found.max_per_host, found.hosts) == ("anti-affinity", 2, {member: "h1"})
    assert found.members == {member, mine}
    assert [len(each) for each in seen] == [2, 1]
    assert groups.of_request(world.cells, make.spec(), mine) is None, "nothing asked for, nothing read"


def test_deleted_members_do_not_count(world):
    number = world.group("affinity")
    gone, mine = str(uuid.uuid4()), str(uuid.uuid4())
    world.server(gone, "h1", number)
    world.server(mine, None, number)
    with world.cells.api.write() as tx:
        tx.execute(api.INSTANCE_MAPPINGS.update().where(api.INSTANCE_MAPPINGS.c.instance_uuid == gone).values(queued_for_delete=True))  # fmt: skip # noqa: E501
    found = groups.of_request(world.cells, make.spec(instance_uuid=mine, scheduler_hints={"group": ["g"]}), mine)
    assert (found.members, found.hosts) == ({mine}, {})


def test_affinity_over_the_bus(world):
    for n in range(4):
        world.host(f"h{n}")
    number = world.group("affinity")
    member, mine = str(uuid.uuid4()), str(uuid.uuid4())
    world.server(member, "h2", number)
    world.server(mine, None, number)
    [[chosen]] = select(world, make.spec(instance_uuid=mine, scheduler_hints={"group": ["g"]}))
    assert chosen.service_host == "h2"


def test_image_properties_of_servers(world):
    server = str(uuid.uuid4())
    world.server(server, "h1")
    with world.cell.write() as tx:
        for key, value in (("image_os_distro", "linux"), ("instance_type_x", "y")):
            row = {"instance_uuid": server, "key": key, "value": value, "deleted": 0}
            tx.execute(cell.INSTANCE_SYSTEM_METADATA.insert().values(row))
    assert image_properties(world.cells, make.CELL, [server]) == {server: {"os_distro": "linux"}}


def test_new_hosts_are_mapped_once(world):
    world.host("h1")
    with world.cell.write() as tx:
        tx.execute(cell.COMPUTE_NODES.update().values(mapped=0))
    assert discovery.discover(world.cells) == ["h1"]
    assert discovery.discover(world.cells) == []
    with world.cells.api.read() as tx:
        mapped = tx.execute(sa.select(api.HOST_MAPPINGS.c.host, api.HOST_MAPPINGS.c.cell_id)).all()
    assert [tuple(row) for row in mapped] == [("h1", 2)]


def test_announced_aggregates_reach_every_scheduler(world):
    world.host("h1")
    world.service.snapshot.refresh(force=True)
    aggregate = objects.Aggregate(
        id=1, uuid=str(uuid.uuid4()), name="a", hosts=["h1"], metadata={"availability_zone": "az1"}
    )
    world.client.update_aggregates(CTXT, aggregates=[aggregate])
    deadline = clock.monotonic() + 5
    while clock.monotonic() < deadline and not world.service.snapshot._aggregates:
        pass
    world.service.snapshot._spacing = 60.0
    [[chosen]] = select(world, make.spec())
    assert chosen.availability_zone == "az1"


@pytest.mark.parametrize(("interval", "timers"), [(300, [(300.0, 0.0)]), (0, [(60.0, 0.0)]), (-1, [])])
def test_new_hosts_are_looked_for_at_once_and_as_often_as_configured(world, interval, timers):
    world.conf.set_override("discover_hosts_in_cells_interval", interval, "scheduler")
    made = Service(world.conf, world.cells, world.bus, world.cloud.clients, "s2")
    assert [(timer.spacing, timer.initial_delay) for timer in made._timers.timers] == timers
