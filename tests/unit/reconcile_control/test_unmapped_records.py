"""Records of servers in cells that they are not mapped to: which go, and how, and that nothing else does."""

from __future__ import annotations

import datetime
from typing import Any

import pytest
import sqlalchemy as sa
from tests.unit.conductor.stage import Stage
from tests.unit.conductor.test_build import begin, run
from tests.unit.conductor.test_delete import built
from tests.unit.reconcile_control.test_loops import age, twice

from kilonova.base import clock
from kilonova.conductor import records
from kilonova.db.api import build_requests, instance_mappings
from kilonova.db.api.tables import BUILD_REQUESTS
from kilonova.db.cell.tables import INSTANCES
from kilonova.db.cells import CELL0_UUID
from kilonova.db.engine import Database
from kilonova.reconcile.control import unmapped_records
from kilonova.reconcile.control.orphan_allocations import OrphanAllocations
from kilonova.reconcile.control.orphan_ports import OrphanPorts
from kilonova.reconcile.control.undriven_builds import UndrivenBuilds
from kilonova.reconcile.control.unmapped_records import UnmappedRecords


def recorded_by_a_peer(stage: Stage) -> str:
    """A conductor of a peer's makes the record of a server in its cell and dies."""
    server = stage.post().subject_id
    asked = stage.api.query(build_requests.build_request_get, server)
    assert asked is not None
    stage.cell.run(records.create, stage.ctxt(), records.server_of(asked), "nova", None, None)
    age(stage, server)
    return server


def left_in_cell0(stage: Stage, server: str) -> None:
    values = {"uuid": server, "vm_state": "error", "project_id": "p", "created_at": _row(stage.cell, server)[1]}
    stage.cell0.run(lambda tx: tx.execute(INSTANCES.insert().values(**values)))


def _row(database: Database, server: str) -> Any:
    """`deleted`, `created_at`."""
    statement = sa.select(INSTANCES.c.deleted, INSTANCES.c.created_at).where(INSTANCES.c.uuid == server)
    return database.query(lambda tx: tx.execute(statement).first())


def test_what_may_yet_become_the_server_stays(stage: Stage) -> None:
    server = recorded_by_a_peer(stage)
    assert twice(UnmappedRecords(stage.world)).seen == []
    assert twice(UndrivenBuilds(stage.world)).repaired == 0, "its build request is what is undriven"
    stage.api.run(build_requests.build_request_delete, server)
    mapped = instance_mappings.instance_mapping_set_cell
    stage.api.run(mapped, server, _cell1(stage))
    assert twice(UnmappedRecords(stage.world)).seen == []
    assert twice(UndrivenBuilds(stage.world)).repaired == 1


def _cell1(stage: Stage) -> str:
    return next(cell.uuid for cell in stage.cells.all() if not cell.is_cell0)


def test_the_record_of_a_peer_that_died_goes_when_the_server_is_given_up_elsewhere(stage: Stage) -> None:
    server = recorded_by_a_peer(stage)
    past = clock.naive_now() - datetime.timedelta(days=1)
    stage.api.run(lambda tx: tx.execute(BUILD_REQUESTS.update().values(created_at=past)))
    assert twice(UndrivenBuilds(stage.world)).repaired == 1
    run(stage)
    assert stage.mapping(server)["cell_uuid"] == CELL0_UUID
    assert _row(stage.cell, server) is not None
    loop = UnmappedRecords(stage.world)
    assert twice(loop).repaired == 1
    assert _row(stage.cell, server) is None
    assert stage.buried(server).vm_state == "error"
    assert twice(loop).seen == []


def test_the_record_of_a_server_that_its_user_deleted_ends(stage: Stage) -> None:
    server = recorded_by_a_peer(stage)
    stage.user_deletes(server)
    loop = UnmappedRecords(stage.world)
    assert twice(loop).repaired == 1
    assert _row(stage.cell, server)[0] != 0
    assert twice(loop).seen == []


def test_a_server_that_runs_loses_nothing_by_a_record_elsewhere(stage: Stage) -> None:
    server = built(stage)
    left_in_cell0(stage, server)
    age(stage, server)
    held = stage.leftovers(server)
    for loop in (OrphanAllocations, OrphanPorts, UndrivenBuilds):
        assert twice(loop(stage.world)).repaired == 0
    assert twice(UnmappedRecords(stage.world)).repaired == 0, "it may have been made just now"
    stage.conf.set_override("reconcile_grace", 0.0, group="kilonova")
    for loop in (OrphanAllocations, OrphanPorts, UndrivenBuilds):
        assert twice(loop(stage.world)).repaired == 0
    assert twice(UnmappedRecords(stage.world)).repaired == 1
    assert _row(stage.cell0, server) is None
    assert stage.server(server).vm_state == "active"
    assert stage.leftovers(server) == held
    assert held["allocations"]


def test_where_mappings_were_lost_nothing_goes(stage: Stage) -> None:
    """They may come back from a copy, or by `nova-manage cell_v2 map_instances`."""
    server = recorded_by_a_peer(stage)
    stage.api.run(build_requests.build_request_delete, server)
    stage.api.run(instance_mappings.instance_mapping_delete, server)
    report = twice(UnmappedRecords(stage.world))
    assert report.repaired == 0
    assert len(report.seen) == 1
    assert stage.server(server) is not None
    # A mapping to a cell that has no record of the server is no better.
    other = {"instance_uuid": server, "project_id": "p", "user_id": "u"}
    stage.api.run(instance_mappings.instance_mapping_create, other)
    stage.api.run(instance_mappings.instance_mapping_set_cell, server, CELL0_UUID)
    report = twice(UnmappedRecords(stage.world))
    assert (report.repaired, len(report.seen)) == (0, 1)


def test_a_server_of_a_running_flow_is_left_to_it(stage: Stage) -> None:
    server = begin(stage, stage.post())
    asked = stage.api.query(build_requests.build_request_get, server)
    assert asked is not None
    stage.cell.run(records.create, stage.ctxt(), records.server_of(asked), "nova", None, None)
    age(stage, server)
    stage.user_deletes(server)
    assert twice(UnmappedRecords(stage.world)).seen == []


@pytest.mark.parametrize("count", [5, 6])
def test_page_after_page(stage: Stage, monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    monkeypatch.setattr(unmapped_records, "PAGE", 2)
    servers = [recorded_by_a_peer(stage) for _ in range(count)]
    for server in servers:
        stage.user_deletes(server)
    loop = UnmappedRecords(stage.world)
    done = sum(twice(loop).repaired for _ in range(4))
    assert done == count
    assert all(_row(stage.cell, server)[0] for server in servers)
