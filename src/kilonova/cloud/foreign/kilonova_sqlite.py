"""SQLAlchemy engine plug-in with which a threaded service can live on SQLite.

Chosen in the URL: `sqlite:////path/file.db?plugin=kilonova_sqlite`. Readers do not block the writer (WAL), and a writer
waits for its turn (busy timeout). A transaction begins as a reader and takes the write lock with its first statement
that writes, or reads `FOR UPDATE`; what it has read until then may be older than what it finds from then on, as with
READ COMMITTED elsewhere.

SQLite's own ways do not serve: a deferred transaction that reads first and writes later fails at once when somebody
else has written in between, whatever the timeout; and one that takes the lock at its beginning makes every reader wait
for a writer that may itself be waiting for that reader's thread.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import event
from sqlalchemy.engine import URL, CreateEnginePlugin, Engine

PRAGMAS = ("busy_timeout=60000", "journal_mode=WAL", "synchronous=OFF")
READING = ("SELECT", "PRAGMA", "EXPLAIN")
BEGUN, WRITING = "kilonova_begun", "kilonova_writing"


class Plugin(CreateEnginePlugin):
    def update_url(self, url: URL) -> URL:
        return url

    def engine_created(self, engine: Engine) -> None:
        event.listen(engine, "connect", connected)
        event.listen(engine, "before_cursor_execute", before_execute)
        for moment in ("commit", "rollback"):
            event.listen(engine, moment, ended)


def connected(connection: Any, record: Any) -> None:
    cursor = connection.cursor()
    for pragma in PRAGMAS:
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def before_execute(conn: Any, cursor: Any, statement: str, parameters: Any, context: Any, many: bool) -> None:
    if statement == "BEGIN":
        conn.info[BEGUN], conn.info[WRITING] = True, False
    elif conn.info.get(BEGUN) and not conn.info[WRITING] and needs_lock(statement, context):
        cursor.execute("COMMIT")
        cursor.execute("BEGIN IMMEDIATE")
        conn.info[WRITING] = True


def needs_lock(statement: str, context: Any) -> bool:
    """Whether a statement writes. A SAVEPOINT counts: what it would protect has to begin after the lock."""
    if not statement.lstrip().upper().startswith(READING):
        return True
    compiled = getattr(context, "compiled", None)
    return getattr(getattr(compiled, "statement", None), "_for_update_arg", None) is not None


def ended(conn: Any) -> None:
    conn.info[BEGUN] = False
