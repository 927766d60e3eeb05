"""A small file of accepted operations, so that a killed agent can finish or report what it had begun.

Nova's wire carries no operation id, so an operation is known by (request id, method, instance, migration).
The file is the agent's own; it is never the cloud's database.

Payloads hold what users sent (tokens, passwords, files). Nobody else reads the file, and what is forgotten is
overwritten: in the file at once, in SQLite's log beside it by the next `scrub`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import json
import os
import pathlib
import sqlite3
import threading
from collections.abc import Iterator, Mapping
from typing import Any

from kilonova.base import clock

OPEN, DONE, FAILED = "open", "done", "failed"
KEEP_SECONDS = 86400.0
_SCRUBBED = 1
"""`user_version` of a file whose free pages hold nothing."""
_SCHEMA = """
CREATE TABLE IF NOT EXISTS operation (
  id INTEGER PRIMARY KEY,
  request_id TEXT NOT NULL,
  method TEXT NOT NULL,
  instance_uuid TEXT NOT NULL,
  migration_uuid TEXT NOT NULL,
  accepted_at REAL NOT NULL,
  changed_at REAL NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('open', 'done', 'failed')),
  step TEXT,
  result TEXT,
  payload TEXT,
  UNIQUE (request_id, method, instance_uuid, migration_uuid)
);
CREATE INDEX IF NOT EXISTS operation_state ON operation (state, changed_at);
CREATE TABLE IF NOT EXISTS release (
  id INTEGER PRIMARY KEY,
  instance_uuid TEXT NOT NULL,
  volume_id TEXT NOT NULL,
  mark TEXT NOT NULL,
  attachment_id TEXT,
  and_delete INTEGER NOT NULL,
  since REAL NOT NULL,
  error TEXT,
  UNIQUE (instance_uuid, volume_id, mark)
);
"""


@dataclasses.dataclass(frozen=True)
class Key:
    request_id: str
    method: str
    instance_uuid: str
    migration_uuid: str = ""


@dataclasses.dataclass(frozen=True)
class Entry:
    """One accepted operation. `payload` is what is needed to take it up again; None once it ended."""

    id: int
    key: Key
    state: str
    step: str | None
    result: str | None
    payload: Mapping[str, Any] | None
    fresh: bool = False
    """True only in the answer of the `accept` that wrote it."""


@dataclasses.dataclass(frozen=True)
class Release:
    """A server's volume that is to be let go of; known by its id, or only by its mark."""

    instance_uuid: str
    volume_id: str | None = None
    mark: str | None = None
    attachment_id: str | None = None
    and_delete: bool = False
    since: float = 0.0
    error: str | None = None
    """Why the last try failed; None before it."""
    id: int = 0

    @property
    def name(self) -> str:
        return self.volume_id or f"of device {self.mark}"


class FullError(Exception):
    """The file's disk has no room."""


class Book:
    """Thread-safe. `path` is a file only this agent uses, or ":memory:" for one without a tomorrow."""

    def __init__(self, path: pathlib.Path | str) -> None:
        if path != ":memory:":
            pathlib.Path(path).parent.mkdir(parents=True, exist_ok=True)
            _make_private(pathlib.Path(path))
        self._lock = threading.Lock()
        self._unwritten = itertools.count(1)
        self._db = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        # A killed process loses nothing with NORMAL; a host that lost power has lost its guests too.
        self._db.executescript("PRAGMA secure_delete=ON; PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;" + _SCHEMA)
        self._rid_of_old_pages()
        self._forgotten = True
        """Whether SQLite's log may hold what the file has forgotten; so may that of a run that was killed."""
        self.scrub()

    def close(self) -> None:
        self.scrub()
        with self._lock:
            self._db.close()

    def scrub(self) -> None:
        """Empty SQLite's log when it may hold payloads of operations that ended."""
        with self._lock:
            if not self._forgotten:
                return
            [busy, *_] = self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            self._forgotten = bool(busy)

    def _rid_of_old_pages(self) -> None:
        """Files of earlier versions kept in their free pages what was forgotten."""
        if self._db.execute("PRAGMA user_version").fetchone()[0] < _SCRUBBED:
            self._db.executescript(f"VACUUM; PRAGMA user_version={_SCRUBBED};")

    def accept(self, key: Key, payload: Mapping[str, Any]) -> Entry:
        """Write the operation down, or return what is known of it. Raises FullError."""
        now = clock.seconds()
        with self._lock, _room():
            row = self._db.execute(
                "INSERT INTO operation (request_id, method, instance_uuid, migration_uuid, accepted_at, changed_at,"
                " state, payload) VALUES (?, ?, ?, ?, ?, ?, 'open', ?) ON CONFLICT DO NOTHING RETURNING *",
                (*dataclasses.astuple(key), now, now, json.dumps(payload)),
            ).fetchone()
            if row is not None:
                return _entry(row, fresh=True)
            return _entry(self._known(key))

    def unwritten(self, key: Key) -> Entry:
        """An operation that begins although it could not be written down: a later run of the agent knows nothing."""
        return Entry(-next(self._unwritten), key, OPEN, None, None, None, fresh=True)

    def reopen(self, entry: Entry, payload: Mapping[str, Any]) -> Entry:
        """Begin a failed operation again. Raises FullError."""
        with self._lock, _room():
            row = self._db.execute(
                "UPDATE operation SET state = 'open', step = NULL, result = NULL, payload = ?, changed_at = ?"
                " WHERE id = ? AND state = 'failed' RETURNING *",
                (json.dumps(payload), clock.seconds(), entry.id),
            ).fetchone()
            return _entry(row, fresh=True) if row is not None else _entry(self._known(entry.key))

    def step(self, entry: Entry, name: str) -> None:
        """The operation has come so far."""
        self._update(entry, "step = ?", name)

    def finish(self, entry: Entry, state: str, result: str) -> None:
        """The operation ended; its payload is forgotten."""
        self._update(entry, "state = ?, result = ?, payload = NULL", state, result)
        self._forgotten = True

    def open(self) -> list[Entry]:
        """Operations that did not end, in the order of their acceptance."""
        with self._lock:
            rows = self._db.execute("SELECT * FROM operation WHERE state = 'open' ORDER BY id").fetchall()
        return [_entry(row) for row in rows]

    def owe(self, release: Release) -> Release:
        """Write down what is to be let go of; what is known of it already stays, but for its attachment.

        The time counts anew for what is known by its mark only: it may just have been asked for once more.
        Raises FullError.
        """
        values = (release.instance_uuid, release.volume_id or "", release.mark or "")
        with self._lock, _room():
            row = self._db.execute(
                "INSERT INTO release (instance_uuid, volume_id, mark, attachment_id, and_delete, since)"
                " VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET attachment_id = excluded.attachment_id,"
                " and_delete = max(and_delete, excluded.and_delete),"
                " since = CASE WHEN mark = '' THEN since ELSE excluded.since END RETURNING *",
                (*values, release.attachment_id, release.and_delete, clock.seconds()),
            ).fetchone()
        return _release(row)

    def owed(self) -> list[Release]:
        """What is to be let go of still, the oldest first."""
        with self._lock:
            rows = self._db.execute("SELECT * FROM release ORDER BY id").fetchall()
        return [_release(row) for row in rows]

    def still_owed(self, release: Release, error: str) -> None:
        with self._lock:
            self._db.execute("UPDATE release SET error = ? WHERE id = ?", (error, release.id))

    def settled(self, release: Release) -> None:
        with self._lock:
            self._db.execute("DELETE FROM release WHERE id = ?", (release.id,))

    def prune(self, keep_seconds: float = KEEP_SECONDS) -> int:
        """Forget what ended longer ago than that."""
        with self._lock:
            cursor = self._db.execute(
                "DELETE FROM operation WHERE state != 'open' AND changed_at < ?", (clock.seconds() - keep_seconds,)
            )
            return cursor.rowcount

    def _known(self, key: Key) -> tuple[Any, ...]:
        row = self._db.execute(
            "SELECT * FROM operation WHERE request_id = ? AND method = ? AND instance_uuid = ? AND migration_uuid = ?",
            dataclasses.astuple(key),
        ).fetchone()
        assert row is not None
        return tuple(row)

    def _update(self, entry: Entry, what: str, *values: str) -> None:
        with self._lock:
            self._db.execute(
                f"UPDATE operation SET {what}, changed_at = ? WHERE id = ?",  # noqa: S608 - `what` is one of ours
                (*values, clock.seconds(), entry.id),
            )


@contextlib.contextmanager
def _room() -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as exc:
        if exc.sqlite_errorcode == sqlite3.SQLITE_FULL:
            raise FullError("there is no room for the host's journal: its disk is full") from exc
        raise


def _make_private(path: pathlib.Path) -> None:
    """The file, and those that SQLite keeps beside it, are for their owner only, whoever made them."""
    with open(os.open(path, os.O_CREAT | os.O_RDWR, 0o600), "rb") as file:
        os.fchmod(file.fileno(), 0o600)
    for beside in ("-wal", "-shm"):
        with contextlib.suppress(FileNotFoundError):
            os.chmod(f"{path}{beside}", 0o600)


def _release(row: tuple[Any, ...]) -> Release:
    ident, instance, volume, mark, attachment, and_delete, since, error = row
    return Release(instance, volume or None, mark or None, attachment, bool(and_delete), since, error, ident)


def _entry(row: tuple[Any, ...], fresh: bool = False) -> Entry:
    ident, request_id, method, instance, migration, _, _, state, step, result, payload = row
    key = Key(request_id, method, instance, migration)
    return Entry(ident, key, state, step, result, json.loads(payload) if payload else None, fresh)
