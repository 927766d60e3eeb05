"""Which errors of a database pass, by what the drivers raise."""

from __future__ import annotations

import sqlite3

import psycopg2
import pymysql
import pytest
import sqlalchemy as sa

from kilonova.db.away import is_away, told
from kilonova.db.failures import UnreachableError


class Coded(psycopg2.Error):
    """psycopg2's exceptions have their code from the server only."""

    def __init__(self, state: str) -> None:
        super().__init__("said the server")
        self.state = state

    @property
    def pgcode(self) -> str:
        return self.state


def raised(original: BaseException, kind: type[sa.exc.DBAPIError] = sa.exc.OperationalError) -> sa.exc.DBAPIError:
    return kind("SELECT 1", {}, original)


@pytest.mark.parametrize(
    ("error", "away"),
    [
        (raised(sqlite3.OperationalError("database or disk is full")), True),
        (raised(sqlite3.OperationalError("database is locked")), True),
        (raised(sqlite3.OperationalError("disk I/O error")), True),
        (raised(sqlite3.OperationalError("no such column: x")), False),
        (raised(pymysql.err.OperationalError(2003, "Can't connect to MySQL server")), True),
        (raised(pymysql.err.OperationalError(2013, "Lost connection during query")), True),
        (raised(pymysql.err.OperationalError(1053, "Server shutdown in progress")), True),
        (raised(pymysql.err.InternalError(1021, "Disk full"), sa.exc.InternalError), True),
        (raised(pymysql.err.OperationalError(1290, "The server is running with --read-only")), True),
        (raised(pymysql.err.OperationalError(1054, "Unknown column")), False),
        (raised(pymysql.err.DataError(1366, "Incorrect string value"), sa.exc.DataError), False),
        (raised(Coded("57P03")), True),
        (raised(Coded("53100")), True),
        (raised(Coded("08006")), True),
        (raised(Coded("22021"), sa.exc.DataError), False),
        (raised(Coded("23505"), sa.exc.IntegrityError), False),
        (UnreachableError(None, None, psycopg2.OperationalError("connection refused")), True),
        (sa.exc.OperationalError(None, None, ValueError("no such URL")), False),
        (sa.exc.TimeoutError("QueuePool limit"), True),
        (sa.exc.DBAPIError("SELECT 1", {}, OSError("gone"), connection_invalidated=True), True),
        (ValueError("ours"), False),
    ],
)
def test_what_passes(error: BaseException, away: bool) -> None:
    assert is_away(error) is away


def test_callers_on_the_bus_are_told_by_a_name_that_they_know() -> None:
    with pytest.raises(RuntimeError, match="is full"), told(RuntimeError):
        raise raised(sqlite3.OperationalError("database or disk is full"))
    with pytest.raises(sa.exc.OperationalError), told(RuntimeError):
        raise raised(sqlite3.OperationalError("no such column: x"))
