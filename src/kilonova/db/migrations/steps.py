"""Steps of a revision that may be repeated: what is done already is passed over.

MySQL commits each statement on tables by itself. A revision that was cut off there has done a part of its steps, and
the database still has the revision before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from alembic import op


def has_table(name: str) -> bool:
    return sa.inspect(op.get_bind()).has_table(name)


def unique_constraints(table: str) -> set[str | None]:
    """Their names."""
    return {one["name"] for one in sa.inspect(op.get_bind()).get_unique_constraints(table)}


def drop_table(name: str) -> None:
    if has_table(name):
        op.drop_table(name)


def create_table(name: str, *parts: sa.schema.SchemaItem, **options: Any) -> None:
    """Indexes may be among the parts; they are made one by one, on MySQL after the table."""
    indexes = [part for part in parts if isinstance(part, sa.Index)]
    if not has_table(name):
        op.create_table(name, *(part for part in parts if not isinstance(part, sa.Index)), **options)
    for index in indexes:
        assert index.name is not None
        create_index(index.name, name, [str(column) for column in index.expressions])


def add_columns(table: str, *columns: sa.Column[Any]) -> None:
    missing = [column for column in columns if column.name not in _columns(table)]
    if missing:
        with op.batch_alter_table(table) as batch:
            for column in missing:
                batch.add_column(column)


def drop_columns(table: str, *names: str) -> None:
    present = [name for name in names if name in _columns(table)]
    if present:
        with op.batch_alter_table(table) as batch:
            for name in present:
                batch.drop_column(name)


def create_index(name: str, table: str, columns: Sequence[str]) -> None:
    if name not in _indexes(table):
        op.create_index(name, table, list(columns))


def drop_index(name: str, table: str) -> None:
    if name in _indexes(table):
        op.drop_index(name, table_name=table)


def _columns(table: str) -> set[str]:
    return {one["name"] for one in sa.inspect(op.get_bind()).get_columns(table)}


def _indexes(table: str) -> set[str | None]:
    return {one["name"] for one in sa.inspect(op.get_bind()).get_indexes(table)}
