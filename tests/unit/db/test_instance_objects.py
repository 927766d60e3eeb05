"""Instance objects and their rows: what saving and destroying leaves in the database."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa

from kilonova.base import ids
from kilonova.contract import context, exceptions, objects
from kilonova.db.cell import instances, tables
from kilonova.db.engine import Database
from kilonova.db.objects import instance as store

CHILDREN = (
    tables.INSTANCE_EXTRA,
    tables.INSTANCE_INFO_CACHES,
    tables.INSTANCE_METADATA,
    tables.INSTANCE_SYSTEM_METADATA,
)


def make(db: Database, **values: Any) -> objects.Instance:
    new = objects.Instance(
        uuid=ids.new_uuid(),
        project_id="p",
        user_id="u",
        display_name="d",
        metadata={"k": "v"},
        system_metadata={"s": "t"},
        **values,
    )
    db.run(store.create, context.admin(), new)
    return new


def test_created_with_its_parts(cell_db: Database) -> None:
    made = make(cell_db, host="h")
    assert made.id
    assert made.obj_what_changed() == set()
    row = cell_db.query(instances.instance_get, made.uuid, ("metadata", "system_metadata", "info_cache"))
    assert row is not None
    assert (row["metadata"], row["system_metadata"], row["host"]) == ({"k": "v"}, {"s": "t"}, "h")
    assert row["info_cache"]["network_info"] == "[]"
    with pytest.raises(exceptions.InstanceExists):
        cell_db.run(store.create, context.admin(), objects.Instance(uuid=made.uuid, project_id="p"))


def test_destroyed_with_all_that_hangs_on_it(cell_db: Database) -> None:
    made = make(cell_db)
    cell_db.run(store.destroy, context.admin(), made)
    assert made.deleted
    with cell_db.read() as tx:
        for table in CHILDREN:
            found = tx.execute(sa.select(table.c.id, table.c.deleted).where(table.c.instance_uuid == made.uuid)).all()
            assert found, table.name
            assert all(key == deleted for key, deleted in found), table.name
    with pytest.raises(exceptions.InstanceNotFound):
        cell_db.run(store.destroy, context.admin(), made)


def test_destroyed_for_good(cell_db: Database) -> None:
    made = make(cell_db)
    cell_db.run(store.destroy, context.admin(), made, hard_delete=True)
    assert cell_db.query(instances.instance_get, made.uuid, deleted_too=True) is None


def test_not_destroyed_when_a_host_got_it_meanwhile(cell_db: Database) -> None:
    made = make(cell_db)
    cell_db.run(instances.instance_update, made.uuid, {"host": "h"})
    with pytest.raises(exceptions.ObjectActionError):
        cell_db.run(store.destroy, context.admin(), made)


@pytest.mark.parametrize(
    ("now", "expected", "error"),
    [
        ({"task_state": "deleting"}, {"expected_task_state": [None]}, exceptions.UnexpectedDeletingTaskStateError),
        ({"task_state": "rebooting"}, {"expected_task_state": "spawning"}, exceptions.UnexpectedTaskStateError),
        ({"vm_state": "error"}, {"expected_vm_state": "active"}, exceptions.InstanceUpdateConflict),
    ],
)
def test_saved_only_from_an_expected_state(
    cell_db: Database, now: dict[str, Any], expected: dict[str, Any], error: type[Exception]
) -> None:
    made = make(cell_db, vm_state="active")
    cell_db.run(instances.instance_update, made.uuid, now)
    made.display_name = "other"
    with pytest.raises(error):
        cell_db.run(store.save, context.admin(), made, **expected)
    row = cell_db.query(instances.instance_get, made.uuid)
    assert row is not None
    assert row["display_name"] == "d"


def test_save_of_what_is_gone(cell_db: Database) -> None:
    made = make(cell_db)
    cell_db.run(instances.instance_destroy, made.uuid)
    made.display_name = "other"
    with pytest.raises(exceptions.InstanceNotFound):
        cell_db.run(store.save, context.admin(), made)
