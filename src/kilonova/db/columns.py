"""Column types and columns that many tables share."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import mysql

from kilonova.base import clock


class Inet(sa.types.UserDefinedType[str]):
    """PostgreSQL's type of addresses; SQLAlchemy's own comes with the whole dialect, which others do not need."""

    cache_ok = True

    def get_col_spec(self, **kw: Any) -> str:
        return "INET"


MEDIUM_TEXT = sa.Text().with_variant(mysql.MEDIUMTEXT(), "mysql")
BIG_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
INET = sa.String(43).with_variant(Inet(), "postgresql")
INET_SMALL = sa.String(39).with_variant(Inet(), "postgresql")


def timestamps() -> list[sa.Column[Any]]:
    """When the row was made and last changed: naive UTC, set by the statements themselves."""
    return [
        sa.Column("created_at", sa.DateTime(), default=clock.naive_now),
        sa.Column("updated_at", sa.DateTime(), onupdate=clock.naive_now),
    ]


def soft_delete() -> list[sa.Column[Any]]:
    """A deleted row stays: `deleted` is 0 while it lives and its own id afterwards."""
    return [
        sa.Column("deleted_at", sa.DateTime()),
        sa.Column("deleted", sa.Integer(), default=0),
    ]
