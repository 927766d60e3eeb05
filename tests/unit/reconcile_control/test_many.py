"""What cannot be repaired now hides nothing that can: loops over long lists come to what is behind it."""

from __future__ import annotations

import datetime
import uuid
from typing import Any

from tests.unit.conductor.stage import PROJECT, Stage
from tests.unit.conductor.test_delete import built
from tests.unit.reconcile_control.test_loops import age, twice

from kilonova.base import clock
from kilonova.db import flows
from kilonova.db.api import instance_mappings
from kilonova.db.api.tables import BUILD_REQUESTS
from kilonova.db.cell import tables
from kilonova.flow.store import NewFlow
from kilonova.reconcile.control import pages
from kilonova.reconcile.control.stuck_tasks import StuckTasks
from kilonova.reconcile.control.undriven_builds import UndrivenBuilds

MANY = 1100
"""More than two pages."""


def old() -> datetime.datetime:
    return clock.naive_now() - datetime.timedelta(days=1)


def records_of(stage: Stage, number: int, **values: Any) -> list[str]:
    """Servers as a rack leaves them that failed a day ago."""
    uuids = [str(uuid.uuid4()) for _ in range(number)]
    row = {"project_id": PROJECT, "deleted": 0, "created_at": old(), "updated_at": old(), **values}
    with stage.cell.write() as tx:
        tx.execute(tables.INSTANCES.insert(), [row | {"uuid": each} for each in uuids])
    return uuids


def drive(stage: Stage, uuids: list[str], op: str) -> None:
    def offer(tx: Any) -> None:
        for each in uuids:
            assert flows.offer(tx, NewFlow(op, each, {}))

    stage.cell.run(offer)


def test_servers_of_hosts_that_are_away_do_not_keep_a_deletion_from_its_flow(stage: Stage) -> None:
    records_of(stage, MANY, vm_state="active", task_state="powering-off", host="burnt")
    server = built(stage)
    left = stage.server(server)
    left.task_state = "deleting"
    stage.save(left)
    age(stage, server)
    assert twice(StuckTasks(stage.world)).repaired == 1
    assert stage.cell_store.active(server, "delete")


def test_deletions_that_are_under_way_do_not_hide_a_record_that_says_deleted(stage: Stage) -> None:
    drive(stage, records_of(stage, MANY, vm_state="deleted", task_state=None, host="h1"), "delete")
    (server,) = records_of(stage, 1, vm_state="deleted", task_state=None, host="h1")
    assert twice(StuckTasks(stage.world)).repaired == 1
    assert stage.cell_store.active(server, "delete")


def test_builds_that_flows_drive_do_not_hide_one_that_nobody_does(stage: Stage) -> None:
    drive(stage, records_of(stage, MANY, vm_state="building", task_state="spawning", host="h1"), "watch")
    (server,) = records_of(stage, 1, vm_state="building", task_state="spawning", host="h1")
    owner = {"instance_uuid": server, "project_id": PROJECT, "user_id": "user"}
    stage.api.run(instance_mappings.instance_mapping_create, owner)
    stage.api.run(instance_mappings.instance_mapping_set_cell, server, stage.cells.all(include_cell0=False)[0].uuid)
    assert twice(UndrivenBuilds(stage.world)).repaired == 1
    assert stage.cell_store.active(server, "watch")


def test_of_many_old_build_requests_a_pass_takes_so_many(stage: Stage) -> None:
    uuids = [str(uuid.uuid4()) for _ in range(MANY)]
    row = {"project_id": PROJECT, "created_at": old(), "instance": "not read at all"}
    with stage.api.write() as tx:
        tx.execute(BUILD_REQUESTS.insert(), [row | {"instance_uuid": each} for each in uuids])
    report = twice(UndrivenBuilds(stage.world))
    assert report.repaired == pages.ENOUGH
    assert len([each for each in uuids if stage.api_store.active(each, "build_batch")]) == pages.ENOUGH
    assert twice(UndrivenBuilds(stage.world)).repaired == pages.ENOUGH, "the next ones"


def test_a_host_that_never_reported_does_not_end_the_look_at_others(stage: Stage) -> None:
    """A service's record is there before its first report, and says nothing of when it was heard of."""
    with stage.cell.write() as tx:
        tx.execute(tables.SERVICES.insert().values(host="new", binary="nova-compute", deleted=0))
    records_of(stage, 1, vm_state="active", task_state="powering-off", host="new")
    (server,) = records_of(stage, 1, vm_state="active", task_state="deleting", host="new")
    report = twice(StuckTasks(stage.world))
    assert report.repaired == 1
    assert stage.cell_store.active(server, "delete")
