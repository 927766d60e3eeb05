"""Running statements; rows are plain dicts."""

from __future__ import annotations

import contextlib
import datetime
import functools
import json
import operator
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import msgspec
import sqlalchemy as sa

from kilonova.base import clock
from kilonova.db import exact
from kilonova.db.engine import Tx
from kilonova.db.outcomes import DuplicateError

Row = dict[str, Any]
V = TypeVar("V")


def rows(tx: Tx, statement: sa.Executable, parameters: Any = None) -> list[Row]:
    """Every row of the result."""
    result = tx.execute(statement, parameters)
    keys = list(result.keys())
    return [dict(zip(keys, row, strict=True)) for row in result.all()]


def row(tx: Tx, statement: sa.Executable) -> Row | None:
    """The first row of the result."""
    result = tx.execute(statement)
    found = result.first()
    return None if found is None else dict(zip(result.keys(), found, strict=True))


def values(tx: Tx, statement: sa.Executable) -> list[Any]:
    """The first column of every row."""
    return list(tx.execute(statement).scalars())


def pairs(tx: Tx, statement: sa.Executable) -> dict[Any, Any]:
    """The second column by the first."""
    return {found[0]: found[1] for found in tx.execute(statement).all()}


AT_ONCE = 1000
"""Values that one statement names; servers pass over their indexes, or refuse it, where it names many more."""


def slices(named: Iterable[V]) -> Iterator[list[V]]:
    """As many at a time of what comes in any number as a statement names; each is in one of them."""
    every = list(dict.fromkeys(named))
    return (every[start : start + AT_ONCE] for start in range(0, len(every), AT_ONCE))


def insert(tx: Tx, table: sa.Table, new: Mapping[str, Any]) -> Row:
    """Put one row in and return it as it is stored. Raises DuplicateError."""
    with unique(table.name):
        key = tx.execute(table.insert().values(**clean(new))).inserted_primary_key
    assert key is not None
    where = [column == value for column, value in zip(table.primary_key.columns, tuple(key), strict=True)]
    found = row(tx, sa.select(table).where(*where))
    assert found is not None
    return found


def insert_many(tx: Tx, table: sa.Table, new: Sequence[Mapping[str, Any]]) -> None:
    """Put many rows of the same columns in. Raises DuplicateError."""
    if new:
        with unique(table.name):
            tx.execute(table.insert(), [clean(one) for one in new])


def untaken(tx: Tx, column: sa.Column[Any], name: str, *where: sa.ColumnElement[bool]) -> None:
    """Raise DuplicateError for a name that a unique key of MySQL takes for one that is there (elsewhere it says so)."""
    if tx.dialect.name != "mysql":
        no_clash(column.table, [name], [each for each in values(tx, sa.select(column).where(*where)) if each != name])


def no_clash(table: Any, new: Iterable[str], present: Collection[str]) -> None:
    """Raise DuplicateError where MySQL's unique key would not tell two names apart."""
    if exact.clash(new, present) is not None:
        raise DuplicateError(table.name)


@contextlib.contextmanager
def unique(what: str) -> Iterator[None]:
    """Turn the violation of a unique key into DuplicateError."""
    try:
        yield
    except sa.exc.IntegrityError as exc:
        if is_duplicate(exc):
            raise DuplicateError(what) from exc
        raise


def is_duplicate(exc: sa.exc.IntegrityError) -> bool:
    """Whether a unique key was violated (and not another constraint)."""
    original = exc.orig
    code = getattr(original, "pgcode", None) or getattr(original, "sqlite_errorname", None)
    if code is not None:
        return code in ("23505", "SQLITE_CONSTRAINT_UNIQUE", "SQLITE_CONSTRAINT_PRIMARYKEY")
    arguments: tuple[Any, ...] = getattr(original, "args", ())
    return bool(arguments) and arguments[0] == 1062


_UNFIT = re.compile("[\0\ud800-\udfff\U00010000-\U0010ffff]")


def storable(text: str, length: int | None = None) -> str:
    """A text of any source as every database holds it: what tables of MySQL (utf8mb3) or PostgreSQL lack is marked."""
    return _UNFIT.sub("\N{REPLACEMENT CHARACTER}", text)[:length]


def json_text(value: Any) -> str:
    """A value as JSON that every database holds."""
    return escaped(msgspec.json.encode(value).decode())


def escaped(text: str) -> str:
    """JSON as every database holds it: what a table of MySQL lacks is escaped."""
    return text if text.isascii() else _UNFIT.sub(lambda found: json.dumps(found[0])[1:-1], text)


TEXT_BYTES = 65535
"""What a TEXT column of MySQL takes; more is an error there."""


def fitting(text: str | None) -> str | None:
    """A text of any length and source for such a column: of a longer one its beginning and its end."""
    if text is None:
        return None
    text = storable(text)
    if len(text) * 4 <= TEXT_BYTES or len(text.encode()) <= TEXT_BYTES:
        return text
    half = TEXT_BYTES // 2 - 4
    encoded = text.encode()
    return f"{encoded[:half].decode(errors='ignore')}\n...\n{encoded[-half:].decode(errors='ignore')}"


def clean(new: Mapping[str, Any]) -> dict[str, Any]:
    """Values as columns take them: times as naive UTC."""
    return {k: clock.naive(v) if isinstance(v, datetime.datetime) else v for k, v in new.items()}


def soft_deleted(table: sa.Table, *where: sa.ColumnElement[bool]) -> sa.Update:
    """The statement that marks the living rows among these as deleted; `updated_at` stays as it was."""
    return (
        table.update()
        .where(table.c.deleted == 0, *where)
        .values(deleted=table.c.id, deleted_at=clock.naive_now(), updated_at=table.c.updated_at)
    )


def changed_since(table: sa.Table, when: datetime.datetime) -> sa.ColumnElement[bool]:
    """Rows whose last change is not before a time. One that was never changed counts from when it was made."""
    return _changed(table, operator.ge, when)


def changed_before(table: sa.Table, when: datetime.datetime) -> sa.ColumnElement[bool]:
    """Rows whose last change is not after a time."""
    return _changed(table, operator.le, when)


def _changed(table: sa.Table, test: Callable[[Any, Any], Any], when: datetime.datetime) -> sa.ColumnElement[bool]:
    updated, moment = table.c.updated_at, clock.naive(when)
    otherwise = sa.func.coalesce(table.c.deleted_at, table.c.created_at)
    # Two terms and not one COALESCE: both go by the index of updated_at.
    return sa.or_(test(updated, moment), sa.and_(updated.is_(None), test(otherwise, moment)))


@functools.lru_cache(maxsize=256)
def selection(table: sa.Table, names: frozenset[str] | None = None) -> sa.Select[Any]:
    """SELECT of the named columns, or of all; made once, since making it takes longer than running it."""
    return sa.select(*(column for column in table.columns if names is None or column.name in names))


def columns(table: sa.Table, names: Iterable[str] | None) -> list[sa.Column[Any]]:
    """The named columns, or all."""
    return list(table.columns) if names is None else [table.c[name] for name in names]
