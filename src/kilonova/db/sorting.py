"""The order of a list, decided in one place: ORDER BY, the condition "behind the marker", merging what cells sorted.

NULL is the smallest value everywhere. Text is sorted by its column's collation on MySQL, as by Nova: `a` is beside `A`,
and what the collation calls equal is equal. Cells give the weights of their texts along (`weights`), so that merging
compares as they do. Elsewhere texts are sorted by their bytes, which is how Python compares them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from kilonova.db.columns import Inet
from kilonova.db.engine import Tx
from kilonova.db.outcomes import InvalidSortKeyError

Row = Mapping[str, Any]
Sort = Sequence[tuple[str, str]]
"""Columns and directions (`asc`, `desc`), the most significant first."""

WEIGHT = "weight:"
"""In a row, before the name of a column: by what the column's value is sorted."""

TEXT_LENGTH = 255
"""So much of a long text is sorted by; servers have limits of their own, which they pass over in silence."""

_SORTED_AS_BYTES = frozenset({"uuid"})
"""Columns whose values every collation sorts by their bytes."""

_ALWAYS_SET = "created_at"
"""Nullable by Nova's schema, but no row is without it."""


def ordered(tx: Tx, table: sa.Table, sort: Sort) -> list[sa.ColumnElement[Any]]:
    """The ORDER BY of a page. Raises InvalidSortKeyError."""
    return [_direction(tx, _column(table, key), direction) for key, direction in sort]


def after(tx: Tx, table: sa.Table, sort: Sort, marker: Row) -> sa.ColumnElement[bool]:
    """The condition "sorted behind the marker row", for nullable sort keys too."""
    alternatives = []
    for position, (key, direction) in enumerate(sort):
        same = [_same(tx, _column(table, k), marker[k]) for k, _ in sort[:position]]
        beyond = _beyond(tx, _column(table, key), direction, marker[key])
        if beyond is not None:
            alternatives.append(sa.and_(*same, beyond))
    return sa.or_(*alternatives) if alternatives else sa.false()


def weights(tx: Tx, table: sa.Table, sort: Sort) -> list[sa.ColumnElement[Any]]:
    """Columns to be read along by whoever merges pages: the weights of texts where they are not their bytes."""
    if tx.dialect.name != "mysql":
        return []
    texts = [_column(table, key) for key, _ in sort if key not in _SORTED_AS_BYTES]
    return [
        # Collations of MySQL pass over spaces at the end; weights do not.
        sa.func.weight_string(sa.func.rpad(_sorted(tx, column), TEXT_LENGTH, " ")).label(f"{WEIGHT}{column.name}")
        for column in texts
        if isinstance(column.type, sa.String)
    ]


def key(sort: Sort) -> Callable[[Row], Any]:
    """What rows are compared by when pages are merged."""

    def compare(left: Row, right: Row) -> int:
        for name, direction in sort:
            weight = WEIGHT + name
            a, b = left.get(weight, left.get(name)), right.get(weight, right.get(name))
            if a == b:
                continue
            smaller = a is None or (b is not None and a < b)
            return -1 if smaller == (direction == "asc") else 1
        return 0

    return functools.cmp_to_key(compare)


def _column(table: sa.Table, name: str) -> sa.Column[Any]:
    column = table.c.get(name)
    if column is None:
        raise InvalidSortKeyError(name)
    return column


def _sorted(tx: Tx, column: sa.Column[Any]) -> sa.ColumnElement[Any]:
    """By what a column is sorted and compared in this database."""
    kind, dialect = column.type, tx.dialect.name
    if not isinstance(kind, sa.String) or dialect == "sqlite":
        return column
    # Servers sort enumerations by the place of a value, and compare them as text.
    text: sa.ColumnElement[Any] = sa.cast(column, sa.String(TEXT_LENGTH)) if isinstance(kind, sa.Enum) else column
    if dialect == "postgresql":
        if isinstance(kind.dialect_impl(tx.dialect), Inet):
            text = sa.func.host(column)
        return sa.collate(text, "C")
    return sa.func.left(text, TEXT_LENGTH) if isinstance(kind, sa.Text) else text


def _direction(tx: Tx, column: sa.Column[Any], direction: str) -> sa.ColumnElement[Any]:
    ascending = direction == "asc"
    what = _sorted(tx, column)
    order = what.asc() if ascending else what.desc()
    # Indexes are in PostgreSQL's own order, NULL the greatest: a page of the newest goes by one only without this.
    if tx.dialect.name == "postgresql" and column.nullable and column.name != _ALWAYS_SET:
        return order.nulls_first() if ascending else order.nulls_last()
    return order


def _same(tx: Tx, column: sa.Column[Any], value: Any) -> sa.ColumnElement[bool]:
    return column.is_(None) if value is None else _sorted(tx, column) == value


def _beyond(tx: Tx, column: sa.Column[Any], direction: str, value: Any) -> sa.ColumnElement[bool] | None:
    if value is None:
        return column.is_not(None) if direction == "asc" else None
    # Truth values have an order, but no database compares them by it.
    truth = isinstance(column.type, sa.Boolean)
    compared: sa.ColumnElement[Any] = sa.cast(column, sa.Integer) if truth else _sorted(tx, column)
    limit = int(value) if truth else value
    if direction == "asc":
        return compared > limit
    return sa.or_(compared < limit, column.is_(None)) if column.nullable else compared < limit
