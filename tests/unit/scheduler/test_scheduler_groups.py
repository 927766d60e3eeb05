"""Members of a group that are chosen for at the same moment: the policy holds, and who comes second goes elsewhere."""

from __future__ import annotations

import concurrent.futures
import threading
import uuid

import pytest
import sqlalchemy as sa
from tests.unit.scheduler import make
from tests.unit.scheduler.test_scheduler_service import CTXT, World, templates, world

from kilonova.contract import exceptions
from kilonova.db import group_hosts
from kilonova.db.api.tables import INSTANCE_GROUP_MEMBER, INSTANCE_MAPPINGS
from kilonova.db.cell import tables as cell
from kilonova.db.migrations import sync
from kilonova.db.turn_tables import KN_GROUP_HOST
from kilonova.scheduler import groups
from kilonova.scheduler.service import Service

__all__ = ["templates", "world"]

MANY = 10


def asked_for(world: World, group: int) -> str:
    """A member that is accepted and in no cell yet."""
    server = str(uuid.uuid4())
    with world.cells.api.write() as tx:
        row = {"instance_uuid": server, "cell_id": None, "project_id": make.PROJECT, "queued_for_delete": False}
        tx.execute(INSTANCE_MAPPINGS.insert().values(row))
        tx.execute(INSTANCE_GROUP_MEMBER.insert().values(group_id=group, instance_uuid=server))
    return server


def choose(service: Service, server: str) -> str:
    spec = make.spec(instance_uuid=server, scheduler_hints={"group": ["g"]})
    ((chosen, *_),) = service.chooser.select(CTXT, spec, [server], alternates=True)
    return str(chosen.service_host)


@pytest.fixture
def all_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has chosen before the first of them says so."""
    settle, gate, told = groups.settle, threading.Barrier(MANY), threading.local()

    def slow(*args: object) -> None:
        if not getattr(told, "once", False):
            told.once = True
            gate.wait(30)
        settle(*args)

    monkeypatch.setattr(groups, "settle", slow)


@pytest.mark.usefixtures("all_chosen")
@pytest.mark.parametrize(("policy", "hosts"), [("affinity", 1), ("anti-affinity", MANY)])
def test_d9_ten_at_once(world: World, policy: str, hosts: int) -> None:
    number = world.group(policy)
    for n in range(MANY + 2):
        world.host(f"h{n}")
    members = [asked_for(world, number) for _ in range(MANY)]
    # As many schedulers as members, each with a taste of its own: none of them knows what another one has just done.
    world.conf.set_override("host_subset_size", MANY + 2, group="filter_scheduler")
    services = [Service(world.conf, world.cells, world.bus, world.cloud.clients, f"s{n}") for n in range(MANY)]
    for each in services:
        each.snapshot.refresh(force=True)
    with concurrent.futures.ThreadPoolExecutor(MANY) as pool:
        chosen = list(pool.map(choose, services, members))
    assert len(set(chosen)) == hosts
    claimed = {member: world.cloud.placement.held(member) for member in members}
    assert all(len(held) == 1 for held in claimed.values()), "nothing is left of a choice that was given up"
    names = {provider.uuid: provider.name for provider in world.cloud.placement.providers.values()}
    assert [names[next(iter(claimed[member]))] for member in members] == chosen


def test_where_a_member_goes_is_known_before_it_is_there(world: World) -> None:
    for n in range(3):
        world.host(f"h{n}")
    world.service.snapshot.refresh(force=True)
    number = world.group("affinity")
    first, second = asked_for(world, number), asked_for(world, number)
    host = choose(world.service, first)
    assert group_hosts.members_of(world.cells, second).hosts == {first: host}
    assert choose(world.service, second) == host


@pytest.mark.parametrize("end", ["deleted", "forgotten", "buried", "failed"])
def test_a_member_that_ended_before_it_was_there_is_in_nobodys_way(world: World, end: str) -> None:
    for n in range(2):
        world.host(f"h{n}")
    world.service.snapshot.refresh(force=True)
    number = world.group("anti-affinity")
    ended, other, last = (asked_for(world, number) for _ in range(3))
    one = choose(world.service, ended)
    assert choose(world.service, other) != one
    with pytest.raises(exceptions.NoValidHost):
        choose(world.service, last)
    mapping = INSTANCE_MAPPINGS.c
    with world.cells.api.write() as tx:
        if end == "forgotten":
            tx.execute(INSTANCE_MAPPINGS.delete().where(mapping.instance_uuid == ended))
        else:
            values = {"deleted": {"queued_for_delete": True}, "buried": {"cell_id": 1}, "failed": {"cell_id": 2}}[end]
            tx.execute(INSTANCE_MAPPINGS.update().where(mapping.instance_uuid == ended).values(values))
    if end == "failed":
        with world.cell.write() as tx:
            tx.execute(cell.INSTANCES.insert().values(uuid=ended, host=None, vm_state="error", deleted=0))
    fresh = Service(world.conf, world.cells, world.bus, world.cloud.clients, "s2")
    fresh.snapshot.refresh(force=True)
    assert choose(fresh, last) == one


def test_a_record_says_more_than_what_was_said_before(world: World) -> None:
    number = world.group("affinity")
    moved, waiting, mine = asked_for(world, number), asked_for(world, number), asked_for(world, number)
    seen = group_hosts.members_of(world.cells, mine)
    assert group_hosts.take(world.cells, seen, {moved: "h1", waiting: "h1"}) == set()
    with world.cells.api.write() as tx:
        both = INSTANCE_MAPPINGS.c.instance_uuid.in_([moved, waiting])
        tx.execute(INSTANCE_MAPPINGS.update().where(both).values(cell_id=2))
    with world.cell.write() as tx:
        rows = [(moved, "h2"), (waiting, None)]
        tx.execute(
            cell.INSTANCES.insert(), [{"uuid": u, "host": h, "vm_state": "building", "deleted": 0} for u, h in rows]
        )
    seen = group_hosts.members_of(world.cells, mine)
    assert (seen.hosts, seen.under_way) == ({moved: "h2", waiting: "h1"}, frozenset([waiting]))
    assert group_hosts.take(world.cells, seen, {mine: "h3"}) == {moved, waiting}
    group_hosts.forget(world.cells, [waiting])
    seen = group_hosts.members_of(world.cells, mine)
    assert group_hosts.take(world.cells, seen, {mine: "h2"}) == set()


@pytest.mark.parametrize(
    ("policy", "most", "others", "wanted", "bad"),
    [
        ("affinity", 1, {}, {"x": "h1"}, set()),
        ("affinity", 1, {"a": "h1"}, {"x": "h1", "y": "h1"}, set()),
        ("affinity", 1, {"a": "h1"}, {"x": "h2"}, {"a"}),
        ("affinity", 1, {"a": "h1", "b": "h2"}, {"x": "h2"}, set()),
        ("anti-affinity", 1, {"a": "h1"}, {"x": "h2"}, set()),
        ("anti-affinity", 1, {"a": "h1", "b": "h2"}, {"x": "h1"}, {"a"}),
        ("anti-affinity", 2, {"a": "h1"}, {"x": "h1"}, set()),
        ("anti-affinity", 2, {"a": "h1"}, {"x": "h1", "y": "h1"}, {"a"}),
    ],
)
def test_who_is_in_the_way(policy: str, most: int, others: dict, wanted: dict, bad: set) -> None:
    rules = {"max_server_per_host": str(most)}
    members = group_hosts.Members("g", policy, rules, frozenset(), {}, frozenset(), frozenset())
    assert group_hosts.in_the_way(members, others, wanted) == bad


def test_a_scheduler_in_a_cloud_of_novas_does_without_our_tables(world: World) -> None:
    for n in range(2):
        world.host(f"h{n}")
    world.service.snapshot.refresh(force=True)
    sync.drop_own(world.cells.api)
    number = world.group("affinity")
    assert choose(world.service, asked_for(world, number)) in ("h0", "h1")


def test_what_was_said_long_ago_is_forgotten(world: World) -> None:
    number = world.group("affinity")
    one = asked_for(world, number)
    seen = group_hosts.members_of(world.cells, one)
    group_hosts.take(world.cells, seen, {one: "h1"})
    assert world.cells.api.run(group_hosts.group_hosts_forget, 0) == 0
    assert world.cells.api.run(group_hosts.group_hosts_forget, 2**62) == 1
    with world.cells.api.read() as tx:
        assert tx.execute(sa.select(KN_GROUP_HOST)).all() == []
