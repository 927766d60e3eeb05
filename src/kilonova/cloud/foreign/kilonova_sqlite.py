"""SQLAlchemy engine plug-in with which a threaded service can live on SQLite.

Chosen in the URL: `sqlite:////path/file.db?plugin=kilonova_sqlite`. Readers do not block the writer (WAL), a writer
waits for its turn (busy timeout), and each transaction takes the write lock at its beginning: a deferred one that
reads first and writes later fails at once when somebody else has written in between, however long the timeout.
With `&begin=deferred` no lock is taken: for connections that only read. The same holds for a second transaction that a
thread opens inside its own: Placement reads generations that way in the middle of a claim, and would wait for itself.
"""

from __future__ import annotations

import threading
from typing import Any

from sqlalchemy import event
from sqlalchemy.engine import URL, CreateEnginePlugin, Engine

WRITING = threading.local()
"""`connections`: those of this thread that hold the write lock."""

PRAGMAS = ("busy_timeout=60000", "journal_mode=WAL", "synchronous=OFF")


class Plugin(CreateEnginePlugin):
    def __init__(self, url: URL, kwargs: dict[str, Any]) -> None:
        super().__init__(url, kwargs)
        self.reads_only = url.query.get("begin") == "deferred"

    def update_url(self, url: URL) -> URL:
        return url.difference_update_query(["begin"])

    def engine_created(self, engine: Engine) -> None:
        event.listen(engine, "connect", connected)
        if not self.reads_only:
            event.listen(engine, "before_cursor_execute", immediate, retval=True)
            event.listen(engine, "commit", ended)
            event.listen(engine, "rollback", ended)
            event.listen(engine, "checkin", returned)


def connected(connection: Any, record: Any) -> None:
    cursor = connection.cursor()
    for pragma in PRAGMAS:
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def immediate(conn: Any, cursor: Any, statement: str, parameters: Any, context: Any, many: bool) -> tuple[str, Any]:
    if statement != "BEGIN" or writing():
        return statement, parameters
    writing().add(id(conn.connection.dbapi_connection))
    return "BEGIN IMMEDIATE", parameters


def writing() -> set[int]:
    found: set[int] = WRITING.__dict__.setdefault("connections", set())
    return found


def ended(conn: Any) -> None:
    writing().discard(id(conn.connection.dbapi_connection))


def returned(connection: Any, record: Any) -> None:
    writing().discard(id(connection))
