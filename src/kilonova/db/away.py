"""Which errors of a database pass: it is stopped, restarting, full or read-only for now, and nothing was decided.

What a statement or a value is to blame for is not among them, though drivers raise it under the same classes.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Iterator
from typing import Final

import sqlalchemy as sa

from kilonova.db.failures import LOST, DatabaseError, is_disconnect, is_retryable

_SQLITE: Final = ("is full", "disk i/o error", "unable to open database file", "readonly database", "out of memory")

_MYSQL: Final = frozenset({
    3, 11, 28,  # the server's own files: cannot write, cannot close, no space
    1020, 1021, 1030, 1037, 1038, 1041, 1114, 3675,  # disk or memory is full
    1040, 1047, 1053, 1080, 1129, 1152, 1158, 1159, 1160, 1161, 1184, 1203, 1226, 1927,  # no connection, or no more
    1205, 1213,  # another transaction was in the way
    1290, 1792, 1836,  # read-only for now
    2002, 2003, 2005, 2006, 2013, 2014, 2055,  # the client's side of a lost connection
})  # fmt: skip

_POSTGRESQL: Final = ("08", "40", "53", "57P", "58", "25006", "55P03")
"""Classes (and two codes) of SQLSTATE: connection, rollback, resources, shutdown, system, read-only, lock."""


def is_away(exc: BaseException) -> bool:
    """Whether the same may work in a moment, because the failure is the database's and not the statement's."""
    if isinstance(exc, LOST):
        return True
    if not isinstance(exc, DatabaseError):
        return False
    if is_disconnect(exc) or is_retryable(exc):
        return True
    original = exc.orig
    if isinstance(original, sqlite3.Error):
        return any(sign in str(original).lower() for sign in _SQLITE)
    state = getattr(original, "pgcode", None)
    if state:
        return str(state).startswith(_POSTGRESQL)
    return _code(original) in _MYSQL


@contextlib.contextmanager
def told(as_kind: Callable[[str], Exception]) -> Iterator[None]:
    """For what is answered over the bus: a database that is away is told by a name that callers know."""
    try:
        yield
    except sa.exc.SQLAlchemyError as exc:
        if is_away(exc):
            raise as_kind(str(getattr(exc, "orig", None) or exc)) from exc
        raise


def _code(original: BaseException | None) -> object:
    return original.args[0] if original is not None and original.args else None
