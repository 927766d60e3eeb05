"""Instance faults."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import sqlalchemy as sa

from kilonova.contract import objects
from kilonova.db import sorting
from kilonova.db.cell.tables import INSTANCE_FAULTS
from kilonova.db.objects import hydrate
from kilonova.db.query import fitting, slices, storable

MESSAGE_LENGTH = 255


def from_row(row: hydrate.Row) -> objects.InstanceFault:
    return hydrate.fill(objects.InstanceFault(), row)


def latest(tx: sa.Connection, uuids: Collection[str]) -> dict[str, objects.InstanceFault]:
    """The newest fault of each instance that has one."""
    table = INSTANCE_FAULTS
    newest = sa.select(sa.func.max(table.c.id)).where(table.c.deleted == 0).group_by(table.c.instance_uuid)
    found: dict[str, objects.InstanceFault] = {}
    for part in slices(uuids):
        among = newest.where(table.c.instance_uuid.in_(part))
        rows = tx.execute(sa.select(table).where(table.c.id.in_(among))).mappings()
        found |= {row["instance_uuid"]: from_row(row) for row in rows}
    return found


def create(tx: sa.Connection, ctxt: Any, fault: objects.InstanceFault) -> None:
    values = hydrate.changed_columns(fault, INSTANCE_FAULTS)
    values["message"] = storable(values.get("message") or "", MESSAGE_LENGTH)
    values["details"] = fitting(values.get("details"))
    hydrate.fill(fault, hydrate.insert(tx, INSTANCE_FAULTS, values))


def get_latest_for_instance(tx: sa.Connection, ctxt: Any, instance_uuid: str) -> objects.InstanceFault | None:
    return latest(tx, [instance_uuid]).get(instance_uuid)


def get_latest_by_instance_uuids(
    tx: sa.Connection, ctxt: Any, instance_uuids: Collection[str]
) -> objects.InstanceFaultList:
    return objects.InstanceFaultList(objects=list(latest(tx, instance_uuids).values()))


def get_by_instance_uuids(tx: sa.Connection, ctxt: Any, instance_uuids: Collection[str]) -> objects.InstanceFaultList:
    """All faults, newest first."""
    table = INSTANCE_FAULTS
    rows: list[hydrate.Row] = [
        row
        for part in slices(instance_uuids)
        for row in tx.execute(hydrate.select_alive(table, table.c.instance_uuid.in_(part))).mappings()
    ]
    rows.sort(key=sorting.key((("created_at", "desc"), ("id", "desc"))))
    return objects.InstanceFaultList(objects=[from_row(row) for row in rows])
