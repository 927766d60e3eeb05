"""Names as keys: equal are names that are the same, whatever a database's collation holds for equal.

MySQL and MariaDB compare Nova's tables without regard to case, accents and spaces at the end (utf8mb3_general_ci),
SQLite and PostgreSQL character by character. What selects by a name says so with `equal` or `among`. Where a unique
key forbids MySQL to hold two names that differ in nothing else, `clash` tells, so that every database refuses them.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterable
from typing import Any

import sqlalchemy as sa

Condition = sa.ColumnElement[bool]


def equal(dialect: str, column: sa.ColumnElement[Any], name: str | None) -> Condition:
    """That a column is exactly this; the first comparison is for the index."""
    if dialect != "mysql" or name is None:
        return column == name
    return sa.and_(column == name, sa.cast(column, sa.LargeBinary) == name.encode())


def among(dialect: str, column: sa.ColumnElement[Any], names: Iterable[str]) -> Condition:
    """That a column is exactly one of these."""
    wanted = list(names)
    if dialect != "mysql":
        return column.in_(wanted)
    return sa.and_(column.in_(wanted), sa.cast(column, sa.LargeBinary).in_([name.encode() for name in wanted]))


def fold(name: str) -> str:
    """What MySQL compares of a name: no case, no accents, no spaces at the end."""
    plain = (each for each in unicodedata.normalize("NFKD", name) if not unicodedata.combining(each))
    return "".join(plain).upper().rstrip(" ")


def clash(new: Iterable[str], present: Collection[str] = ()) -> tuple[str, str] | None:
    """Two different names that MySQL takes for one: of the new ones, or a new one and one that is there."""
    known = {fold(name): name for name in present}
    for name in dict.fromkeys(new):
        other = known.setdefault(fold(name), name)
        if other != name and name not in present:
            return other, name
    return None


def sentence(what: str, names: tuple[str, str]) -> str:
    """What is said to who gave them."""
    return f"{what} {names[0]!r} and {names[1]!r} differ in nothing but case, accents or spaces at the end."
