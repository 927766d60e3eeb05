"""Deleted servers go to the shadow tables whole, and out of them, on MariaDB and PostgreSQL."""

from __future__ import annotations

import pytest
import sqlalchemy as sa
from tests.real.database_fixtures import database_server, databases

from kilonova.base import ids
from kilonova.cmd.manage.archive import _forget
from kilonova.db.api import instance_mappings
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
    told: list[str] = []
    done = archive.archive(cell, 1000, forget=told.extend)
    assert set(told) == set(uuids[:2])
    assert done.rows["instances"] == 2
    assert (count(cell, "instances"), count(cell, "shadow_instances")) == (1, 2)
    assert (count(cell, "instance_metadata"), count(cell, "shadow_instance_metadata")) == (1, 2)
    with cell.read() as tx:
        shadow = whole.METADATA.tables["shadow_instances"]
        assert set(tx.execute(sa.select(shadow.c.locked_by)).scalars()) == {"admin"}
    assert archive.purge(cell)["shadow_instances"] == 2
    assert archive.purge(cell) == {}


class Killed(BaseException):
    pass


def test_killed_in_a_batch_it_leaves_no_mapping_of_an_archived_server(
    databases: tuple[Database, Database], monkeypatch: pytest.MonkeyPatch
) -> None:
    api, cell = databases
    monkeypatch.setattr(archive, "CHUNK", 2)
    uuids = [ids.new_uuid() for _ in range(6)]
    for uuid in uuids:
        cell.run(instances.instance_create, {"uuid": uuid, "project_id": "p", "metadata": {"a": "1"}})
        api.run(instance_mappings.instance_mapping_create, {"instance_uuid": uuid, "project_id": "p"})
        cell.run(instances.instance_destroy, uuid)
    batches = []

    def forget(found: list[str]) -> None:
        batches.append(found)
        api.run(_forget, found, set())
        if len(batches) == 2:
            raise Killed

    with pytest.raises(Killed):
        archive.archive(cell, 1000, forget=forget)
    there = set(cell.query(instances.instance_uuids, {"deleted": True}))
    assert len(there) == 4
    assert {one["instance_uuid"] for one in api.query(instance_mappings.instance_mapping_list, uuids)} < there
    archive.archive(cell, 1000, forget=forget)
    assert sorted(uuid for batch in batches[2:] for uuid in batch) == sorted(there)
    assert api.query(instance_mappings.instance_mapping_list, uuids) == []
