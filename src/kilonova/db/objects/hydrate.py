"""Rows into objects and back, field by field."""

from __future__ import annotations

import datetime
import ipaddress
import json
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import netaddr
import sqlalchemy as sa

from kilonova.base import clock
from kilonova.contract.objects.base import WireObject

O = TypeVar("O", bound=WireObject)  # noqa: E741
Row = Any
"""A row by column name: SQLAlchemy's RowMapping or a dict."""


def fill(obj: O, row: Row, skip: Iterable[str] = ()) -> O:
    """Set every field of `obj` that `row` has, except `skip`; nothing counts as changed afterwards."""
    leave = set(skip)
    for name in type(obj).fields:
        if name in leave or name not in row:
            continue
        setattr(obj, name, bool(row[name]) if name == "deleted" else row[name])
    obj.obj_reset_changes()
    return obj


def column_value(value: Any) -> Any:
    """A field's value as its column takes it: naive UTC, plain strings."""
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        return value.astimezone(datetime.UTC).replace(tzinfo=None)
    if isinstance(value, netaddr.IPAddress | ipaddress.IPv4Address | ipaddress.IPv6Address):
        return str(value)
    return value


def changed_columns(obj: WireObject, table: sa.Table, skip: Iterable[str] = ()) -> dict[str, Any]:
    """The changed fields that are columns of `table`."""
    leave = set(skip)
    return {
        name: column_value(value)
        for name, value in obj.obj_get_changes().items()
        if name in table.c and name not in leave
    }


def dump(obj: WireObject | None) -> str | None:
    """An object as JSON text columns keep it."""
    return None if obj is None else json.dumps(obj.obj_to_primitive())


def parse(kind: type[O], text: str | None) -> O | None:
    """The object that a JSON text column keeps."""
    return None if not text else kind.obj_from_primitive(json.loads(text))


def select_alive(table: sa.Table, *conditions: sa.ColumnElement[bool]) -> sa.Select[Any]:
    """Rows that are not soft-deleted and meet the conditions."""
    return sa.select(table).where(table.c.deleted == 0, *conditions)


def soft_delete(tx: sa.Connection, table: sa.Table, *conditions: sa.ColumnElement[bool]) -> int:
    """Mark living rows deleted as Nova does; returns how many."""
    result = tx.execute(
        sa.update(table)
        .where(table.c.deleted == 0, *conditions)
        .values(deleted=table.c.id, deleted_at=clock.naive_now(), updated_at=table.c.updated_at)
    )
    return result.rowcount


def insert(tx: sa.Connection, table: sa.Table, values: Mapping[str, Any]) -> Any:
    """Insert one row; returns it as stored."""
    result = tx.execute(sa.insert(table).values(**values))
    key = result.inserted_primary_key
    assert key is not None
    return tx.execute(sa.select(table).where(table.c.id == key[0])).mappings().one()


def grouped(rows: Iterable[Row], key: str) -> dict[Any, list[Row]]:
    """Rows by the value of a column."""
    groups: dict[Any, list[Row]] = {}
    for row in rows:
        groups.setdefault(row[key], []).append(row)
    return groups


def as_set(expected: Any) -> tuple[Any, ...] | None:
    """What a caller expects of a state, as a tuple; None when it expects nothing in particular."""
    if expected is None:
        return None
    return tuple(expected) if isinstance(expected, list | tuple | set | frozenset) else (expected,)
