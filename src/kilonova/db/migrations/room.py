"""A room of their own for our tables beside a cell's database: another schema on PostgreSQL, another database on MySQL.

Nova's `db archive_deleted_rows` reads every table of a cell's database and stops at one that it has no model of; views
it passes over. So our tables lie in the room, and views of their names where everyone looks for them: statements,
transactions and rights to rows are as if the tables were there. SQLite has no rooms: there they stay.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
from collections.abc import Iterable

import sqlalchemy as sa

LOG = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Kind:
    """How a kind of server has rooms; `{database}`, `{room}` and `{table}` are filled in, the latter two quoted."""

    name: str
    make: str
    move: str
    view: str
    drop: str


_KINDS = {
    "postgresql": Kind(
        name="kilonova",
        make="CREATE SCHEMA IF NOT EXISTS {room}",
        move="ALTER TABLE {table} SET SCHEMA {room}",
        view="CREATE VIEW {table} AS SELECT * FROM {room}.{table}",
        drop="DROP SCHEMA {room}",
    ),
    "mysql": Kind(
        name="{database}_kilonova",
        make="CREATE DATABASE IF NOT EXISTS {room}",
        move="RENAME TABLE {table} TO {room}.{table}",
        # With the definer's rights it would be of no use any more when that account is gone.
        view="CREATE SQL SECURITY INVOKER VIEW {table} AS SELECT * FROM {room}.{table}",
        drop="DROP DATABASE {room}",
    ),
}

_LONGEST_NAME = 64


def settle(connection: sa.Connection, tables: Iterable[str]) -> bool:
    """Move our tables into their room, views into their places; what was cut off goes on. False where they stay."""
    found = _room(connection)
    if found is None:
        return False
    kind, room = found
    inspector = sa.inspect(connection)
    here, views = set(inspector.get_table_names()), set(inspector.get_view_names())
    missing = [table for table in tables if table not in views]
    if missing and not _made(connection, kind, room):
        return False
    for table in missing:
        if table in here:
            _do(connection, kind.move, room, table)
        _do(connection, kind.view, room, table)
    return True


def rejoin(connection: sa.Connection, tables: Iterable[str]) -> None:
    """Views in the places of tables that are in their room already: a move was cut off before its view was made."""
    found = _room(connection)
    inspector = sa.inspect(connection)
    if found is None or found[1] not in inspector.get_schema_names():
        return
    kind, room = found
    moved = set(inspector.get_table_names(schema=room)) - names(connection)
    for table in tables:
        if table in moved:
            _do(connection, kind.view, room, table)


def names(connection: sa.Connection) -> set[str]:
    """Every table that is there, and every view in the place of one."""
    inspector = sa.inspect(connection)
    return {*inspector.get_table_names(), *inspector.get_view_names()}


def drop(connection: sa.Connection, tables: Iterable[str]) -> None:
    """Remove our tables wherever they are, and the room if nothing else is in it."""
    found = _room(connection)
    views = set(sa.inspect(connection).get_view_names())
    for table in tables:
        if table in views:
            _do(connection, "DROP VIEW {table}", "", table)
        else:
            _do(connection, "DROP TABLE IF EXISTS {table}", "", table)
    if found is None or found[1] not in sa.inspect(connection).get_schema_names():
        return
    kind, room = found
    for table in tables:
        _do(connection, "DROP TABLE IF EXISTS {room}.{table}", room, table)
    if not sa.inspect(connection).get_table_names(schema=room):
        _do(connection, kind.drop, room)


def _room(connection: sa.Connection) -> tuple[Kind, str] | None:
    kind = _KINDS.get(connection.dialect.name)
    if kind is None:
        return None
    return kind, kind.name.format(database=connection.engine.url.database)


def _made(connection: sa.Connection, kind: Kind, room: str) -> bool:
    """Whether the room is there, now at the latest."""
    if len(room) > _LONGEST_NAME:
        LOG.warning("kilonova's tables stay among Nova's: %s would be too long a name for a database", room)
        return False
    try:
        # On MySQL this ends the transaction, and a savepoint would be lost with it.
        with connection.begin_nested() if connection.dialect.name == "postgresql" else contextlib.nullcontext():
            _do(connection, kind.make, room)
    except (sa.exc.OperationalError, sa.exc.ProgrammingError) as exc:
        LOG.warning(
            "kilonova's tables stay among Nova's, whose `nova-manage db archive_deleted_rows` stops at them (use "
            "kilonova's): this account may not make %s. To change that, make it, grant all on it to the account and "
            "sync again: %s",
            room,
            exc.orig,
        )
        return False
    return True


def _do(connection: sa.Connection, statement: str, room: str, table: str = "") -> None:
    quote = connection.dialect.identifier_preparer.quote_identifier
    connection.exec_driver_sql(statement.format(room=quote(room), table=quote(table)))
