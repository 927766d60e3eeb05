"""Key/value tables of an instance: metadata and system metadata."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import sqlalchemy as sa

from kilonova.db import exact
from kilonova.db.cell.tables import INSTANCE_SYSTEM_METADATA
from kilonova.db.objects import hydrate


def read(tx: sa.Connection, table: sa.Table, uuids: Iterable[str]) -> dict[str, dict[str, str]]:
    """Pairs by instance, for all `uuids` in one statement; system metadata of deleted instances too."""
    query = sa.select(table.c.instance_uuid, table.c.key, table.c.value).where(
        table.c.instance_uuid.in_(list(uuids)), *_counted(table)
    )
    found: dict[str, dict[str, str]] = {}
    for uuid, key, value in tx.execute(query):
        found.setdefault(uuid, {})[key] = value
    return found


def replace(tx: sa.Connection, table: sa.Table, uuid: str, wanted: Mapping[str, str | None]) -> None:
    """Make the instance's pairs exactly `wanted`: keep equal rows, update, add, delete.

    System metadata is also read of deleted instances, with their deleted rows: there, what is no longer wanted must
    leave no row behind.
    """
    present = read(tx, table, [uuid]).get(uuid, {})
    if gone := present.keys() - wanted.keys():
        where = (table.c.instance_uuid == uuid, exact.among(tx.dialect.name, table.c.key, gone), *_counted(table))
        if table is INSTANCE_SYSTEM_METADATA:
            tx.execute(sa.delete(table).where(*where))
        else:
            hydrate.soft_delete(tx, table, *where)
    for key in present.keys() & wanted.keys():
        if present[key] != wanted[key]:
            same = (table.c.instance_uuid == uuid, exact.equal(tx.dialect.name, table.c.key, key), *_counted(table))
            tx.execute(sa.update(table).where(*same).values(value=wanted[key]))
    if new := wanted.keys() - present.keys():
        tx.execute(sa.insert(table), [{"instance_uuid": uuid, "key": k, "value": wanted[k]} for k in sorted(new)])


def _counted(table: sa.Table) -> tuple[sa.ColumnElement[bool], ...]:
    """Rows of system metadata are deleted with their instance only, so that all of them count."""
    return () if table is INSTANCE_SYSTEM_METADATA else (table.c.deleted == 0,)
