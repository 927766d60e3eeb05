"""Deleted servers go to the shadow tables whole, and out of them, on MariaDB and PostgreSQL."""

from __future__ import annotations

import pytest
import sqlalchemy as sa
from tests.real.database_fixtures import database_server, databases

from kilonova.base import ids
from kilonova.db.cell import archive, instances
from kilonova.db.cell.tables import whole
from kilonova.db.engine import Database

__all__ = ["database_server", "databases"]

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]


def count(cell: Database, table: str) -> int:
    with cell.read() as tx:
        return int(tx.execute(sa.select(sa.func.count()).select_from(whole.METADATA.tables[table])).scalar_one())


def test_archived_and_purged(databases: tuple[Database, Database]) -> None:
    _, cell = databases
    made = {"project_id": "p", "metadata": {"a": "1"}, "system_metadata": {"b": "2"}, "locked": True}
    uuids = [ids.new_uuid() for _ in range(3)]
    for uuid in uuids:
        cell.run(instances.instance_create, {"uuid": uuid, "locked_by": "admin", **made})
    for uuid in uuids[:2]:
        cell.run(instances.instance_destroy, uuid)
    done = archive.archive(cell, 1000)
    assert set(done.instance_uuids) == set(uuids[:2])
    assert done.rows["instances"] == 2
    assert (count(cell, "instances"), count(cell, "shadow_instances")) == (1, 2)
    assert (count(cell, "instance_metadata"), count(cell, "shadow_instance_metadata")) == (1, 2)
    with cell.read() as tx:
        shadow = whole.METADATA.tables["shadow_instances"]
        assert set(tx.execute(sa.select(shadow.c.locked_by)).scalars()) == {"admin"}
    assert archive.purge(cell)["shadow_instances"] == 2
    assert archive.purge(cell) == {}
