"""A database: its pool, its transactions, and when to try one again.

SQLite runs in WAL mode; its writers take turns in the process before they ask for the file's write lock
(`BEGIN IMMEDIATE`), so that waiting is fair and a deadlock by upgrading a read cannot happen.
"""

from __future__ import annotations

import contextlib
import logging
import random
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, Concatenate, NoReturn, ParamSpec, TypeVar

import msgspec
import sqlalchemy as sa
from oslo_config import cfg

from kilonova.base import retry
from kilonova.base.secrets import masked
from kilonova.db import silence, urls
from kilonova.db.connecting import SQLITE_BUSY_SECONDS, WRITE, DatabaseOptions, create
from kilonova.db.failures import DatabaseError, UnreachableError, is_disconnect, is_retryable

LOG = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

Tx = sa.Connection
"""An open transaction; opaque to other rooms."""

LOST_TRIES = 3
"""So often a transaction is tried whose connections are lost one after the other."""

__all__ = ["Database", "DatabaseError", "NestedWriteError", "Tx", "UnusableDatabase"]


class NestedWriteError(RuntimeError):
    """A thread opened a write transaction inside its own on the same SQLite file: it would wait for itself."""


class Turn:
    """The right to write to one SQLite file, handed on in the process; knows who holds it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holder: int | None = None

    @contextlib.contextmanager
    def taken(self) -> Iterator[None]:
        me = threading.get_ident()
        if self._holder == me:
            raise NestedWriteError("this thread is already writing to the same SQLite file")
        if not self._lock.acquire(timeout=SQLITE_BUSY_SECONDS):
            raise sa.exc.OperationalError("BEGIN IMMEDIATE", None, sqlite3.OperationalError("database is locked"))
        self._holder = me
        try:
            yield
        finally:
            self._holder = None
            self._lock.release()


_TURNS: dict[str, Turn] = {}
_TURNS_LOCK = threading.Lock()


def _turn(path: str) -> Turn:
    with _TURNS_LOCK:
        return _TURNS.setdefault(path, Turn())


class _Losses:
    """Judges the failures of one transaction: whether another try may help and can do no harm."""

    def __init__(self) -> None:
        self.committing = False
        self._lost = 0

    def again(self, exc: BaseException) -> bool:
        if is_retryable(exc):
            return True
        # A connection lost before the commit took everything with it; one lost during it may have committed.
        if self.committing or not is_disconnect(exc):
            return False
        self._lost += 1
        return self._lost < LOST_TRIES


class Database:
    """One database. Nothing is connected before the first transaction.

    `options` are the fields of DatabaseOptions. A SQLite database is a file: one in memory belongs to its connection.
    `patient`: an answer may take as long as it likes (an operator's command), while the server's machine is there.
    """

    def __init__(self, url: str, *, patient: bool = False, **options: Any) -> None:
        self._patient = patient
        self.options = DatabaseOptions(**options)
        self.url = urls.parse(url, self.options.connection_parameters)
        self.dialect = self.url.get_backend_name()
        self._engine = create(self.url, self.options)
        self._writer = self._engine.execution_options(**{WRITE: True})
        self._turn = _turn(self.url.database or "") if self.dialect == "sqlite" else None
        replica = self.options.slave_connection
        self._replica = create(urls.parse(replica), self.options) if replica else self._engine

    @classmethod
    def from_group(cls, group: cfg.ConfigOpts.GroupAttr, url: str | None = None, *, patient: bool = False) -> Database:
        """The database of a configuration group, or another one (a cell's) with the group's options."""
        options = msgspec.structs.asdict(DatabaseOptions.from_group(group))
        if url is not None:
            options["slave_connection"] = None
        return cls(url if url is not None else group.connection, patient=patient, **options)

    @property
    def name(self) -> str:
        """The URL without the password."""
        return masked(urls.text(self.url))

    @property
    def engine(self) -> sa.Engine:
        """SQLAlchemy's engine, for migrations."""
        return self._engine

    @contextlib.contextmanager
    def read(self, *, replica: bool = False) -> Iterator[Tx]:
        """A transaction that only reads. `replica`: it may see a slightly old state ([database] slave_connection)."""
        engine = self._replica if replica else self._engine
        with engine.connect() as connection, self._bounded(connection, silence.READ_SECONDS):
            try:
                yield connection
            finally:
                # The server answers to this too; leaving it to the closing would wait without a bound.
                connection.rollback()

    @contextlib.contextmanager
    def write(self) -> Iterator[Tx]:
        """A transaction that is committed at the end, or rolled back when an exception leaves the block."""
        with (
            self._turn.taken() if self._turn else contextlib.nullcontext(),
            self._writer.connect() as connection,
            self._bounded(connection, silence.WRITE_SECONDS),
            connection.begin(),
        ):
            yield connection

    def _bounded(self, connection: Tx, seconds: float) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext() if self._patient else silence.bounded(connection.info, seconds)

    def run(self, fn: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """`fn(tx, ...)` in a write transaction of its own, repeated whole while it loses to deadlocks or locks."""

        losses = _Losses()

        def attempt() -> T:
            losses.committing = False
            with self.write() as tx:
                result = fn(tx, *args, **kwargs)
                losses.committing = True
            return result

        return self._repeated(attempt, losses)

    def query(self, fn: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """`fn(tx, ...)` in a read transaction of its own, repeated when the connection was lost."""
        return self._query(lambda tx: fn(tx, *args, **kwargs), replica=False)

    def query_replica(self, fn: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Like `query`, for what may be a little old: read from the replica, if there is one."""
        return self._query(lambda tx: fn(tx, *args, **kwargs), replica=True)

    def _query(self, look: Callable[[Tx], T], *, replica: bool) -> T:
        def attempt() -> T:
            with self.read(replica=replica) as tx:
                return look(tx)

        return self._repeated(attempt, _Losses())

    def _repeated(self, attempt: Callable[[], T], losses: _Losses) -> T:
        return retry.call(attempt, on=losses.again, backoff=self.options.backoff(), before_retry=self._report)

    def wait(self) -> None:
        """Connect, trying again `max_retries` times (-1: for ever) every `retry_interval` seconds."""
        attempt = 0
        while True:
            try:
                with self.read() as tx:
                    tx.execute(sa.select(sa.literal(1)))
            except sa.exc.OperationalError as exc:
                attempt += 1
                if 0 <= self.options.max_retries < attempt:
                    raise
                why = str(exc).partition("\n")[0]
                LOG.warning("database %s cannot be used, attempt %d: %s", self.name, attempt, why)
                time.sleep(self.options.retry_interval * random.uniform(0.75, 1))  # noqa: S311
            else:
                return

    def dispose(self) -> None:
        """Close the pooled connections."""
        self._engine.dispose()
        if self._replica is not self._engine:
            self._replica.dispose()

    def _report(self, exc: BaseException, attempt: int) -> None:
        LOG.info("transaction on %s lost (attempt %d), trying again: %s", self.name, attempt, exc)


class UnusableDatabase(Database):
    """A database whose URL cannot be used: whoever asks it is told so, as by one that is away."""

    def __init__(self, url: str, reason: Exception) -> None:
        self.options = DatabaseOptions()
        self.dialect = "none"
        self._patient = False
        self._shown = masked(url)
        self._reason = reason

    @property
    def name(self) -> str:
        return self._shown

    @property
    def engine(self) -> sa.Engine:
        """Raises UnreachableError."""
        raise self._error()

    def read(self, *, replica: bool = False) -> NoReturn:
        """Raises UnreachableError."""
        raise self._error()

    def write(self) -> NoReturn:
        """Raises UnreachableError."""
        raise self._error()

    def dispose(self) -> None:
        """There are no connections."""

    def _error(self) -> UnreachableError:
        return UnreachableError(None, None, self._reason)
