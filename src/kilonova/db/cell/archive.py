"""Moving deleted rows out of the way, into the shadow tables, and emptying those.

A row goes together with the rows that refer to it, in one transaction, so that no instance loses half of its parts.
What other databases know of instances is forgotten before these go: whoever is killed in between finds them again.
"""

from __future__ import annotations

import collections
import dataclasses
import datetime
import functools
import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import sqlalchemy as sa

from kilonova.db import query
from kilonova.db.cell import tables
from kilonova.db.cell.tables import shadow, whole
from kilonova.db.engine import Database, Tx

LOG = logging.getLogger(__name__)

IN_USE = frozenset(getattr(tables, name).name for name in tables.__all__ if name != "METADATA")

CHUNK = 50
"""Deleted rows (with all that refers to them) in one transaction."""

ROWS_OF_A_TREE = 20
"""About how many rows a deleted instance has; for keeping near a limit."""

AGE_COLUMNS = {
    "shadow_instance_actions": "created_at",
    "shadow_instance_actions_events": "created_at",
    "shadow_task_log": "updated_at",
}
"""By what the age of rows is told that are never deleted themselves."""


Forget = Callable[[list[str]], None]
"""Told of instances before they are moved."""


@dataclasses.dataclass
class Archived:
    """How many rows of each table went."""

    rows: dict[str, int] = dataclasses.field(default_factory=lambda: collections.defaultdict(int))

    @property
    def total(self) -> int:
        return sum(self.rows.values())


def archive(
    database: Database,
    max_rows: int,
    before: datetime.datetime | None = None,
    *,
    forget: Forget,
    task_log: bool = False,
) -> Archived:
    """Move about `max_rows` rows that were deleted (before a time); with `task_log` also old entries of that log."""
    done = Archived()
    for table in _parents_first():
        for found in _chunks(database, table, done, max_rows, _condition(table, before, task_log=task_log)):
            if table is tables.INSTANCES:
                forget(database.query(query.values, sa.select(table.c.uuid).where(table.c.id.in_(found))))
            _archive_rows(database, table, found, done)
        if done.total >= max_rows:
            break
    return done


def purge(database: Database, before: datetime.datetime | None = None) -> dict[str, int]:
    """Delete the rows of the shadow tables (that are older than a time); how many of each."""
    purged = {}
    for table in whole.METADATA.sorted_tables:
        if table.name.startswith(shadow.PREFIX) and "deleted" in table.c:
            count = database.run(_purge_table, table, before)
            if count:
                purged[table.name] = count
    return purged


def _purge_table(tx: Tx, table: sa.Table, before: datetime.datetime | None) -> int:
    statement = table.delete()
    if before is not None:
        statement = statement.where(table.c[AGE_COLUMNS.get(table.name, "deleted_at")] < before)
    return tx.execute(statement).rowcount


def _parents_first() -> Iterator[sa.Table]:
    for table in whole.METADATA.sorted_tables:
        if table.name in IN_USE and table.name not in shadow.WITHOUT:
            yield table


def _condition(
    table: sa.Table, before: datetime.datetime | None, *, task_log: bool
) -> Sequence[sa.ColumnElement[bool]]:
    if table.name == "task_log" and task_log:
        return [] if before is None else [table.c.updated_at < before]
    gone = [table.c.deleted != 0]
    return gone if before is None else [*gone, table.c.deleted_at < before]


def _chunks(
    database: Database, table: sa.Table, done: Archived, max_rows: int, where: Sequence[sa.ColumnElement[bool]]
) -> Iterator[Sequence[int]]:
    """The rows to be moved, until so many went."""
    after = 0
    while (left := max_rows - done.total) > 0:
        size = max(1, min(CHUNK, left // ROWS_OF_A_TREE)) if _children(table) else min(left, 10 * CHUNK)
        statement = sa.select(table.c.id).where(table.c.id > after, *where).order_by(table.c.id).limit(size)
        found = database.query(query.values, statement)
        if not found:
            return
        after = found[-1]
        yield found


def _archive_rows(database: Database, table: sa.Table, found: Sequence[int], done: Archived) -> None:
    """Move these; when one of them cannot go, those around it still do."""
    try:
        moved = database.run(_move, table, found)
    except sa.exc.IntegrityError as exc:
        if len(found) == 1:
            LOG.warning("row %d of %s stays, since other rows refer to it: %s", found[0], table.name, exc)
            return
        for one in found:
            _archive_rows(database, table, [one], done)
    else:
        for name, count in moved.items():
            done.rows[name] += count


def _move(tx: Tx, table: sa.Table, found: Sequence[int]) -> dict[str, int]:
    """Move rows and what refers to them; how many of each table."""
    moved: dict[str, int] = collections.defaultdict(int)
    for child, rows in _tree(tx, table, found):
        names = [column.name for column in child.columns]
        chosen = child.c.id.in_(rows)
        target = shadow.shadow_of(child)
        tx.execute(target.insert().from_select(names, sa.select(*_as_in(target, child)).where(chosen)))
        moved[child.name] += tx.execute(child.delete().where(chosen)).rowcount
    return moved


def _as_in(target: sa.Table, table: sa.Table) -> list[sa.ColumnElement[Any]]:
    """The columns of a table for its shadow; an enumeration of another name is another type to PostgreSQL."""
    return [
        sa.cast(sa.cast(column, sa.String(255)), target.c[column.name].type)
        if isinstance(column.type, sa.Enum) and column.type.name != getattr(target.c[column.name].type, "name", None)
        else column
        for column in table.columns
    ]


def _tree(tx: Tx, table: sa.Table, found: Sequence[int]) -> Iterator[tuple[sa.Table, Sequence[int]]]:
    """The rows and those that refer to them, the latter first."""
    for child, own, theirs in _children(table):
        keys = sa.select(theirs).where(table.c.id.in_(found))
        rows = query.values(tx, sa.select(child.c.id).where(own.in_(query.values(tx, keys))))
        if rows:
            yield from _tree(tx, child, rows)
    yield table, found


@functools.cache
def _children(table: sa.Table) -> list[tuple[sa.Table, sa.Column[Any], sa.Column[Any]]]:
    """The tables that refer to this one and can be archived: the table, its column, the column it refers to."""
    return [
        (child, key.parent, key.column)
        for child in whole.METADATA.sorted_tables
        if child.name not in shadow.WITHOUT and not child.name.startswith(shadow.PREFIX)
        for key in child.foreign_keys
        if key.column.table is table
    ]
