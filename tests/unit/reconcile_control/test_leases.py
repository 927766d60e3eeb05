"""Of many conductors one runs a loop, over a slice in each pass; what it costs is counted, not timed."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa
from tests.unit.conductor.stage import Stage
from tests.unit.conductor.test_delete import built
from tests.unit.reconcile_control.test_loops import unrecorded

from kilonova.conductor import records
from kilonova.db import flows
from kilonova.db.cell import tables
from kilonova.db.loops import LoopLeases
from kilonova.reconcile.control import loops, orphan_attachments, orphan_ports, orphan_volumes
from kilonova.reconcile.loop import Report

LOOPS = 8


class Time:
    """Of the databases' leases."""

    def __init__(self) -> None:
        self.ahead = 0.0
        self._real = flows.now_ms

    def __call__(self) -> int:
        return self._real() + int(self.ahead * 1000)


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    made = Time()
    monkeypatch.setattr(flows, "now_ms", made)
    return made


@pytest.fixture
def eager(stage: Stage) -> Stage:
    """Whatever is seen twice is repaired; Cinder is looked at too."""
    stage.conf.set_override("reconcile_grace", 0.0, group="kilonova")
    stage.conf.set_override("auth_type", "password", group="service_user")
    return stage


@contextlib.contextmanager
def counted() -> Iterator[list[str]]:
    """Every statement of the block, in all databases."""
    seen: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_more: Any) -> None:
        seen.append(statement)

    sa.event.listen(sa.Engine, "before_cursor_execute", note)
    try:
        yield seen
    finally:
        sa.event.remove(sa.Engine, "before_cursor_execute", note)


def conductors(stage: Stage, number: int) -> list[loops.Service]:
    return [loops.make(stage.world) for _ in range(number)]


def a_pass(services: list[loops.Service]) -> dict[str, list[Report]]:
    """One pass of every loop of every conductor; the reports of those that ran, by loop."""
    ran: dict[str, list[Report]] = {}
    for service in services:
        for name, each in service.passes.items():
            before = each.report.passes
            report = each.run()
            assert report.error is None
            if report.passes > before:
                ran.setdefault(name, []).append(report)
    return ran


def trees_asked(stage: Stage) -> list[str]:
    """The nodes whose providers Placement was asked for, in order."""
    asked = [dict(each.params or ()) for each in stage.cloud.placement.requests]
    return [each["in_tree"] for each in asked if "in_tree" in each]


def many_hosts(stage: Stage, number: int) -> list[str]:
    nodes = sorted(str(uuid.uuid4()) for _ in range(number))
    row = dict.fromkeys(("vcpus", "memory_mb", "local_gb", "vcpus_used", "memory_mb_used", "local_gb_used"), 0)
    row |= {"hypervisor_type": "QEMU", "hypervisor_version": 1, "cpu_info": "", "deleted": 0}
    with stage.cell.write() as tx:
        names = [{"uuid": node, "host": node, "hypervisor_hostname": node} for node in nodes]
        tx.execute(tables.COMPUTE_NODES.insert(), [row | each for each in names])
    return nodes


def test_ten_conductors_and_ten_thousand_hosts_cost_next_to_nothing(eager: Stage) -> None:
    many_hosts(eager, 10_000)
    services = conductors(eager, 10)
    a_pass(services)
    eager.cloud.placement.calls.clear()
    eager.cloud.neutron.calls.clear()
    eager.cloud.cinder.calls.clear()
    passes = 3
    with counted() as statements:
        for _ in range(passes):
            ran = a_pass(services)
            assert {name: len(reports) for name, reports in ran.items()} == dict.fromkeys(ran, 1)
            assert len(ran) == LOOPS
    # A hundred at most where there are trees: each of the fifty nodes of a slice, and what is below it.
    assert len(eager.cloud.placement.calls) <= passes * 2 * 50
    assert len(eager.cloud.neutron.calls) == passes
    assert len(eager.cloud.cinder.calls) == passes * 2, "a page of attachments, a page of volumes"
    idle = passes * 9 * LOOPS
    assert len(statements) - idle <= passes * 60, "what nine conductors do in vain is read one row each"


def test_slices_come_round(eager: Stage) -> None:
    nodes = many_hosts(eager, 7)
    eager.conf.set_override("reconcile_hosts", 3, group="kilonova")
    (service,) = conductors(eager, 1)
    asked = []
    for _ in range(4):
        eager.cloud.placement.requests.clear()
        service.passes["orphan_allocations"].run()
        asked.append(trees_asked(eager))
    assert asked == [nodes[:3], nodes[3:6], nodes[6:], nodes[:3]]


def test_an_orphan_in_a_late_slice_is_repaired_without_another_round(eager: Stage) -> None:
    server = built(eager)
    eager.conf.set_override("reconcile_hosts", 2, group="kilonova")
    many_hosts(eager, 5)
    provider = eager.providers["h1"]
    with eager.cell.write() as tx:
        first = sa.select(sa.func.max(tables.COMPUTE_NODES.c.id)).scalar_subquery()
        number = tx.execute(sa.select(first)).scalar()
        tx.execute(tables.COMPUTE_NODES.update().where(tables.COMPUTE_NODES.c.id == number).values(uuid=provider))
    eager.cell.run(records.erase, eager.ctxt(), server)
    (service,) = conductors(eager, 1)
    run = service.passes["orphan_allocations"]
    passes = 0
    while not run.run().seen:
        passes += 1
        assert passes < 3
    assert run.run().repaired == 1
    assert eager.leftovers(server)["allocations"] == {}


def test_ports_attachments_and_volumes_by_pages(eager: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orphan_ports, "PAGE", 2)
    monkeypatch.setattr(orphan_attachments, "PAGE", 2)
    monkeypatch.setattr(orphan_volumes, "PAGE", 2)
    ended = built(eager)
    lost = [unrecorded(eager, ended) for _ in range(5)]
    eager.cell.run(records.erase, eager.ctxt(), ended)
    neutron, cinder = eager.cloud.neutron, eager.cloud.cinder
    for _ in range(5):
        neutron.port(eager.network, device_id=ended, device_owner="compute:nova")
        eager.clients.cinder.attachment_create(eager.ctxt(), cinder.volume(), ended)
    (service,) = conductors(eager, 1)
    for _ in range(24):
        service.passes["orphan_volumes"].run()
        service.passes["orphan_ports"].run()
        service.passes["orphan_attachments"].run()
    assert neutron.ports_of(ended) == []
    assert not cinder.attachments
    assert not cinder.volumes.keys() & set(lost)
    assert len(cinder.volumes) == 5


def test_a_dead_conductors_loops_pass_on(eager: Stage, time: Time) -> None:
    one, other = conductors(eager, 2)
    assert len(a_pass([one, other])) == LOOPS
    assert a_pass([other]) == {}
    time.ahead = 2 * 60
    assert a_pass([other]) == {}
    time.ahead = 3 * 60 + 1
    assert len(a_pass([other])) == LOOPS
    assert a_pass([one]) == {}, "it has stood still, and finds them in other hands"


def test_a_conductor_that_stops_leaves_its_loops_at_once_and_where_they_were(eager: Stage) -> None:
    nodes = many_hosts(eager, 4)
    eager.conf.set_override("reconcile_hosts", 3, group="kilonova")
    one, other = conductors(eager, 2)
    a_pass([one, other])
    one.start()
    one.stop()
    assert len(a_pass([other])) == LOOPS
    asked = trees_asked(eager)
    assert asked == nodes


def test_what_is_read_again_holds_for_the_next_pass(eager: Stage) -> None:
    server = built(eager)
    many_hosts(eager, 1)
    eager.cell.run(records.erase, eager.ctxt(), server)
    one, other = conductors(eager, 2)
    eager.conf.set_override("reconcile_dry_run", True, group="kilonova")
    for _ in range(3):
        a_pass([one, other])
    assert eager.leftovers(server)["ports"], "nothing is changed"
    eager.conf.set_override("reconcile_disabled", ["orphan_ports"], group="kilonova")
    eager.conf.set_override("reconcile_dry_run", False, group="kilonova")
    for _ in range(3):
        assert "orphan_ports" not in a_pass([one, other])
    eager.conf.set_override("reconcile_disabled", [], group="kilonova")
    for _ in range(2):
        # The other one: whoever has a loop switched off lets it go.
        assert len(a_pass([other])["orphan_ports"]) == 1
    assert not eager.leftovers(server)["ports"]


def test_a_conductor_that_lost_its_loop_repairs_nothing_more(eager: Stage, time: Time) -> None:
    server = built(eager)
    eager.cell.run(records.erase, eager.ctxt(), server)
    (one,) = conductors(eager, 1)
    run = one.passes["orphan_ports"]
    run.run()
    find = run.loop.find

    def slow() -> Any:
        found = find()
        time.ahead += 3600
        assert LoopLeases(eager.api, "another").take("orphan_ports", 60) is not None
        run._turn._renew_at = 0.0
        return found

    run.loop.find = slow  # type: ignore[method-assign]
    assert run.run().repaired == 0
    assert eager.leftovers(server)["ports"]


def test_two_at_once_have_one_lease(stage: Stage) -> None:
    leases = [LoopLeases(stage.api, f"c{n}") for n in range(4)]
    assert sum(each.take("loop", 60) is not None for each in leases) == 1
    assert leases[0].take("loop", 60) == (None,)
    assert leases[0].keep("loop", 60, "x")
    assert not leases[1].keep("loop", 60, "y")
    leases[1].give_back("loop")
    assert leases[1].take("loop", 60) is None
    leases[0].give_back("loop")
    assert leases[1].take("loop", 60) == ("x",)
