"""What a database's error means: it is away, it may be asked again, it lacks tables, it refuses a value.

Only a lost connection says that a database is away. It has classes of its own, made where SQLAlchemy reports an error,
so that whoever catches them catches nothing else.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import sqlalchemy as sa

from kilonova.db.outcomes import InvalidFilterError

DatabaseError = sa.exc.DBAPIError
"""What the database itself refuses or fails at, for rooms that may not know SQLAlchemy."""


class LostError(sa.exc.OperationalError):
    """The connection was lost; what was to be committed may or may not have been."""


class UnreachableError(LostError):
    """No connection could be made; nothing was sent."""


class SilentError(LostError):
    """The database holds the connection and does not answer."""


class UnfitError(sa.exc.DataError):
    """Text that a driver does not send: PostgreSQL has no character NUL."""


LOST = (LostError, sa.exc.TimeoutError)
"""What a database that is away raises; the second: all connections wait for it, and no more may be made."""

UNUSABLE = (sa.exc.ArgumentError, ImportError, ValueError)
"""What making a Database raises when its URL names nothing that there is."""

_MYSQL_RETRYABLE = frozenset({1020, 1205, 1213, 1317})
_PG_RETRYABLE = frozenset({"40001", "40P01", "55P03"})

_LEAVING = frozenset({1047, 1053, 1927, "57P01", "57P02", "57P03"})
"""A server that is shut down, has killed the connection, or is a Galera node without its cluster."""

_NO_TABLES = frozenset({1146, "42P01"})

_TOO_LONG = frozenset({1969, 3024, "57014"})
"""A statement was ended because it took longer than it was given."""

_REFUSED = frozenset(
    {1139, 1264, 1267, 1292, 1300, 1366, 1406, 1525, 3685, 3686, 3687, 3688, 3689, 3690, 3691, 3692, 3693}
)
"""Patterns and values that MySQL and MariaDB do not take; of PostgreSQL it is the class 22."""


def watch(engine: sa.Engine) -> None:
    """Raise LostError, or UnreachableError, where the engine loses a connection or makes none."""

    @sa.event.listens_for(engine, "handle_error")
    def failed(context: sa.ExceptionContext) -> Exception | None:
        reported = context.sqlalchemy_exception
        if reported is None and _is_unfit(context.original_exception):
            return UnfitError(context.statement, None, context.original_exception, hide_parameters=True)
        if not isinstance(reported, DatabaseError):
            return None
        if context.connection is None:
            return UnreachableError(None, None, context.original_exception, hide_parameters=True)
        context.is_disconnect = context.is_disconnect or code(reported) in _LEAVING
        if not context.is_disconnect:
            return None
        lost = context.original_exception
        return LostError(context.statement, None, lost, hide_parameters=True, connection_invalidated=True)


def _is_unfit(original: BaseException) -> bool:
    """Whether psycopg2 refuses a text: its only error that is none of a database's classes."""
    return isinstance(original, ValueError) and "NUL" in str(original)


def code(exc: BaseException) -> Any:
    """The server's code of an error: a number (MySQL), five characters (PostgreSQL), or None."""
    original = getattr(exc, "orig", None)
    if original is None or isinstance(original, sqlite3.Error):
        return None
    return getattr(original, "pgcode", None) or next(iter(original.args), None)


def is_retryable(exc: BaseException) -> bool:
    """Whether the transaction lost to another one and may succeed when repeated whole."""
    if not isinstance(exc, DatabaseError):
        return False
    if isinstance(exc.orig, sqlite3.OperationalError):
        return "locked" in str(exc.orig) or "busy" in str(exc.orig)
    return code(exc) in _PG_RETRYABLE | _MYSQL_RETRYABLE


def is_disconnect(exc: BaseException) -> bool:
    """Whether a connection was lost, so that another one may be better; a write may or may not have happened."""
    return isinstance(exc, DatabaseError) and exc.connection_invalidated and not isinstance(exc, SilentError)


def lacks_tables(exc: BaseException) -> bool:
    """Whether a table is not there: the database was not created."""
    if isinstance(getattr(exc, "orig", None), sqlite3.OperationalError):
        return "no such table" in str(exc)
    return isinstance(exc, sa.exc.ProgrammingError) and code(exc) in _NO_TABLES


def is_refused(exc: BaseException) -> bool:
    """Whether the database does not take a value or a pattern that it was given."""
    found = code(exc)
    return isinstance(exc, UnfitError) or found in _REFUSED or (isinstance(found, str) and found.startswith("22"))


@contextlib.contextmanager
def of_filters(filters: Mapping[str, Any]) -> Iterator[None]:
    """A list that is asked for by the user's filters: what the database refuses is InvalidFilterError."""
    if name := unfit(filters):
        raise InvalidFilterError(f"{name}: the database does not take the value of a filter")
    try:
        yield
    except (DatabaseError, OverflowError) as exc:
        if isinstance(exc, DatabaseError) and code(exc) in _TOO_LONG:
            raise InvalidFilterError("matching the pattern of a filter takes too long") from exc
        if isinstance(exc, DatabaseError) and not is_refused(exc):
            raise
        raise InvalidFilterError("the database does not take the value of a filter") from exc


def unfit(filters: Mapping[str, Any]) -> str | None:
    """The name of a filter whose text has a NUL: not every database takes it, and none has anything like it."""
    return next((name for name, value in filters.items() if _has_nul(value)), None)


def _has_nul(value: Any) -> bool:
    if isinstance(value, str):
        return "\0" in value
    if isinstance(value, Mapping):
        return any(_has_nul(each) for pair in value.items() for each in pair)
    return isinstance(value, Collection) and any(map(_has_nul, value))
