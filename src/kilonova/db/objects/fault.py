"""Instance faults."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import sqlalchemy as sa

from kilonova.contract import objects
from kilonova.db.cell.tables import INSTANCE_FAULTS
from kilonova.db.objects import hydrate
from kilonova.db.query import fitting, storable

MESSAGE_LENGTH = 255


def from_row(row: hydrate.Row) -> objects.InstanceFault:
    return hydrate.fill(objects.InstanceFault(), row)


def latest(tx: sa.Connection, uuids: Collection[str]) -> dict[str, objects.InstanceFault]:
    """The newest fault of each instance that has one, in one statement."""
    table = INSTANCE_FAULTS
    newest = (
        sa.select(sa.func.max(table.c.id))
        .where(table.c.instance_uuid.in_(list(uuids)), table.c.deleted == 0)
        .group_by(table.c.instance_uuid)
    )
    rows = tx.execute(sa.select(table).where(table.c.id.in_(newest))).mappings()
    return {row["instance_uuid"]: from_row(row) for row in rows}


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
    query = hydrate.select_alive(table, table.c.instance_uuid.in_(list(instance_uuids)))
    rows = tx.execute(query.order_by(table.c.created_at.desc(), table.c.id.desc())).mappings()
    return objects.InstanceFaultList(objects=[from_row(row) for row in rows])
