"""Migrations: the record of a move."""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Iterable
from typing import Any

import sqlalchemy as sa

from kilonova.base import clock
from kilonova.contract import exceptions, objects
from kilonova.db import failures
from kilonova.db.cell.tables import INSTANCES
from kilonova.db.cell.tables import MIGRATIONS as TABLE
from kilonova.db.objects import hydrate
from kilonova.db.objects.hydrate import Row
from kilonova.db.query import changed_before, changed_since

ENDED = ("confirmed", "reverted", "failed", "completed", "cancelled", "done")
"""Statuses that hold nothing on either host any more; `error` still does."""


def from_row(row: Row) -> objects.Migration:
    return fill(objects.Migration(), row)


def fill(migration: objects.Migration, row: Row) -> objects.Migration:
    values = dict(row)
    if values["migration_type"] is None:
        resized = values["old_instance_type_id"] != values["new_instance_type_id"]
        values["migration_type"] = "resize" if resized else "migration"
    values["hidden"] = bool(values["hidden"])
    values["cross_cell_move"] = bool(values["cross_cell_move"])
    return hydrate.fill(migration, values)


def _rows(tx: sa.Connection, *conditions: sa.ColumnElement[bool]) -> list[Row]:
    return list(tx.execute(hydrate.select_alive(TABLE, *conditions).order_by(TABLE.c.id)).mappings())


def _list(rows: Iterable[Row]) -> objects.MigrationList:
    return objects.MigrationList(objects=[from_row(row) for row in rows])


def get_by_id(tx: sa.Connection, ctxt: Any, migration_id: int) -> objects.Migration:
    """Raises MigrationNotFound."""
    rows = _rows(tx, TABLE.c.id == migration_id)
    if not rows:
        raise exceptions.MigrationNotFound(migration_id=migration_id)
    return from_row(rows[0])


def get_by_uuid(tx: sa.Connection, ctxt: Any, migration_uuid: str) -> objects.Migration:
    """Raises MigrationNotFound."""
    rows = _rows(tx, TABLE.c.uuid == migration_uuid)
    if not rows:
        raise exceptions.MigrationNotFound(migration_id=migration_uuid)
    return from_row(rows[0])


def get_by_id_and_instance(tx: sa.Connection, ctxt: Any, migration_id: int, instance_uuid: str) -> objects.Migration:
    """Raises MigrationNotFoundForInstance."""
    rows = _rows(tx, TABLE.c.id == migration_id, TABLE.c.instance_uuid == instance_uuid)
    if not rows:
        raise exceptions.MigrationNotFoundForInstance(migration_id=migration_id, instance_id=instance_uuid)
    return from_row(rows[0])


def get_by_instance_and_status(tx: sa.Connection, ctxt: Any, instance_uuid: str, status: str) -> objects.Migration:
    """Raises MigrationNotFoundByStatus."""
    rows = _rows(tx, TABLE.c.instance_uuid == instance_uuid, TABLE.c.status == status)
    if not rows:
        raise exceptions.MigrationNotFoundByStatus(instance_id=instance_uuid, status=status)
    return from_row(rows[0])


def create(tx: sa.Connection, ctxt: Any, migration: objects.Migration) -> None:
    if migration.obj_attr_is_set("id"):
        raise exceptions.ObjectActionError(action="create", reason="already created")
    values = {"user_id": ctxt.user_id, "project_id": ctxt.project_id, "uuid": str(uuid.uuid4())}
    values |= hydrate.changed_columns(migration, TABLE)
    fill(migration, hydrate.insert(tx, TABLE, values))


def save(tx: sa.Connection, ctxt: Any, migration: objects.Migration) -> None:
    """Raises MigrationNotFound."""
    if values := hydrate.changed_columns(migration, TABLE, skip={"id"}):
        done = tx.execute(sa.update(TABLE).where(TABLE.c.id == migration.id, TABLE.c.deleted == 0).values(**values))
        if not done.rowcount:
            raise exceptions.MigrationNotFound(migration_id=migration.id)
    fill(migration, tx.execute(sa.select(TABLE).where(TABLE.c.id == migration.id)).mappings().one())


def _on_node(host: str, node: str) -> sa.ColumnElement[bool]:
    return sa.or_(
        sa.and_(TABLE.c.source_compute == host, TABLE.c.source_node == node),
        sa.and_(TABLE.c.dest_compute == host, TABLE.c.dest_node == node),
    )


def get_in_progress_by_host_and_node(tx: sa.Connection, ctxt: Any, host: str, node: str) -> objects.MigrationList:
    return _list(_rows(tx, _on_node(host, node), TABLE.c.status.not_in((*ENDED, "error"))))


def get_in_progress_and_error(tx: sa.Connection, ctxt: Any, host: str, node: str) -> objects.MigrationList:
    return _list(_rows(tx, _on_node(host, node), TABLE.c.status.not_in(ENDED)))


def get_in_progress_by_instance(
    tx: sa.Connection, ctxt: Any, instance_uuid: str, migration_type: str | None = None
) -> objects.MigrationList:
    kind = [TABLE.c.migration_type == migration_type] if migration_type else []
    active = ("queued", "preparing", "running", "post-migrating")
    return _list(_rows(tx, TABLE.c.instance_uuid == instance_uuid, TABLE.c.status.in_(active), *kind))


def get_unconfirmed_by_dest_compute(
    tx: sa.Connection, ctxt: Any, confirm_window: int, dest_compute: str, use_slave: bool = False
) -> objects.MigrationList:
    """Finished moves to the host whose last change is `confirm_window` seconds old."""
    before = clock.naive_now() - datetime.timedelta(seconds=confirm_window)
    ripe = (changed_before(TABLE, before), TABLE.c.status == "finished", TABLE.c.dest_compute == dest_compute)
    return _list(_rows(tx, *ripe))


def get_by_filters(
    tx: sa.Connection,
    ctxt: Any,
    filters: dict[str, Any],
    sort_keys: list[str] | None = None,
    sort_dirs: list[str] | None = None,
    limit: int | None = None,
    marker: str | None = None,
) -> objects.MigrationList:
    """Filters: status, migration_type, hidden, host, source_compute, node, instance_uuid, user_id, project_id."""
    query = hydrate.select_alive(TABLE, *_conditions(filters))
    if limit == 0:
        return objects.MigrationList(objects=[])
    keys = [*(sort_keys or ["created_at"]), "id"]
    dirs = [*(sort_dirs or ["desc"]), (sort_dirs or ["desc"])[-1]]
    order = [getattr(TABLE.c[key], direction)() for key, direction in zip(keys, dirs, strict=False)]
    rows = list(tx.execute(query.order_by(*order)).mappings())
    if marker:
        places = [n for n, row in enumerate(rows) if row["uuid"] == marker]
        if not places:
            raise exceptions.MarkerNotFound(marker=marker)
        rows = rows[places[0] + 1 :]
    return _list(rows[:limit])


def _conditions(filters: dict[str, Any]) -> list[sa.ColumnElement[bool]]:
    if name := failures.unfit(filters):
        raise exceptions.Invalid(f"no database takes the value of the filter by {name}")
    found: list[sa.ColumnElement[bool]] = []
    for name in ("status", "migration_type", "instance_uuid", "user_id", "project_id", "hidden", "uuid"):
        if name in filters:
            value = filters[name]
            found.append(TABLE.c[name].in_(value) if isinstance(value, list | tuple) else TABLE.c[name] == value)
    if "host" in filters:
        host = filters["host"]
        found.append(sa.or_(TABLE.c.source_compute == host, TABLE.c.dest_compute == host))
    if "source_compute" in filters:
        found.append(TABLE.c.source_compute == filters["source_compute"])
    if "node" in filters:
        found.append(sa.or_(TABLE.c.source_node == filters["node"], TABLE.c.dest_node == filters["node"]))
    for name, changed in (("changes-since", changed_since), ("changes-before", changed_before)):
        if filters.get(name):
            found.append(changed(TABLE, hydrate.column_value(filters[name])))
    return found


def context_of(tx: sa.Connection, ctxt: Any, instance_uuid: str) -> objects.MigrationContext:
    """Raises MigrationContextNotFound."""
    from kilonova.db.objects import instance

    row = tx.execute(sa.select(INSTANCES).where(INSTANCES.c.uuid == instance_uuid)).mappings().first()
    found = instance.load_many(tx, [row], ("migration_context",))[0].migration_context if row else None
    if found is None:
        raise exceptions.MigrationContextNotFound(instance_uuid=instance_uuid)
    return found
