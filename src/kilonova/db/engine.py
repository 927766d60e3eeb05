"""A database: its pool, its transactions, and when to try one again.

SQLite runs in WAL mode; its writers take turns in the process before they ask for the file's write lock
(`BEGIN IMMEDIATE`), so that waiting is fair and a deadlock by upgrading a read cannot happen.
"""

from __future__ import annotations

import contextlib
import logging
import random
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, Concatenate, NoReturn, ParamSpec, TypeVar

import msgspec
import sqlalchemy as sa
from oslo_config import cfg

from kilonova.base import retry
from kilonova.db import silence, urls

LOG = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

Tx = sa.Connection
"""An open transaction; opaque to other rooms."""

DatabaseError = sa.exc.DBAPIError
"""What the database itself refuses or fails at, for rooms that may not know SQLAlchemy."""

SQLITE_BUSY_SECONDS = 30
IDLE_SECONDS = 5.0
"""A connection unused for longer is tried before it is given out."""

_WRITE = "kilonova_write"

MYSQL_IN_TRANSACTION = 1
"""A bit of the status in every answer of a MySQL server (protocol: SERVER_STATUS_IN_TRANS)."""

_MYSQL_RETRYABLE = frozenset({1020, 1205, 1213, 1317})
_PG_RETRYABLE = frozenset({"40001", "40P01", "55P03"})


class DatabaseOptions(msgspec.Struct, frozen=True):
    """How to connect; names and meaning as in the groups [database] and [api_database]. Times in seconds."""

    connection_recycle_time: int = 3600
    max_pool_size: int | None = 5
    max_overflow: int | None = 50
    pool_timeout: int | None = None
    max_retries: int = 10
    retry_interval: int = 10
    db_max_retries: int = 20
    db_retry_interval: float = 1
    db_inc_retry_interval: bool = True
    db_max_retry_interval: float = 10
    mysql_sql_mode: str | None = "TRADITIONAL"
    mysql_wsrep_sync_wait: int | None = None
    sqlite_synchronous: bool = True
    connection_debug: int = 0
    connection_parameters: str = ""
    slave_connection: str | None = None

    @classmethod
    def from_group(cls, group: cfg.ConfigOpts.GroupAttr) -> DatabaseOptions:
        """The options of a configuration group."""
        return cls(**{name: group[name] for name in cls.__struct_fields__})

    def backoff(self) -> retry.Backoff:
        """The waits between tries of a transaction that lost against another one."""
        return retry.Backoff(
            attempts=self.db_max_retries + 1 if self.db_max_retries >= 0 else sys.maxsize,
            base=self.db_retry_interval,
            cap=self.db_max_retry_interval,
            factor=2.0 if self.db_inc_retry_interval else 1.0,
        )


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


class Database:
    """One database. Nothing is connected before the first transaction.

    `options` are the fields of DatabaseOptions. A SQLite database is a file: one in memory belongs to its connection.
    """

    def __init__(self, url: str, **options: Any) -> None:
        self.options = DatabaseOptions(**options)
        self.url = urls.parse(url, self.options.connection_parameters)
        self.dialect = self.url.get_backend_name()
        self._engine = _create(self.url, self.options)
        self._writer = self._engine.execution_options(**{_WRITE: True})
        self._turn = _turn(self.url.database or "") if self.dialect == "sqlite" else None
        replica = self.options.slave_connection
        self._replica = _create(urls.parse(replica), self.options) if replica else self._engine

    @classmethod
    def from_group(cls, group: cfg.ConfigOpts.GroupAttr, url: str | None = None) -> Database:
        """The database of a configuration group, or another one (a cell's) with the group's options."""
        options = msgspec.structs.asdict(DatabaseOptions.from_group(group))
        if url is not None:
            options["slave_connection"] = None
        return cls(url if url is not None else group.connection, **options)

    @property
    def name(self) -> str:
        """The URL without the password."""
        return self.url.render_as_string(hide_password=True)

    @property
    def engine(self) -> sa.Engine:
        """SQLAlchemy's engine, for migrations."""
        return self._engine

    @contextlib.contextmanager
    def read(self, *, replica: bool = False) -> Iterator[Tx]:
        """A transaction that only reads. `replica`: it may see a slightly old state ([database] slave_connection)."""
        with (self._replica if replica else self._engine).connect() as connection:
            yield connection

    @contextlib.contextmanager
    def write(self) -> Iterator[Tx]:
        """A transaction that is committed at the end, or rolled back when an exception leaves the block."""
        with self._turn.taken() if self._turn else contextlib.nullcontext(), self._writer.begin() as connection:
            yield connection

    def run(self, fn: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """`fn(tx, ...)` in a write transaction of its own, repeated whole while it loses to deadlocks or locks."""

        committing = False

        def attempt() -> T:
            nonlocal committing
            committing = False
            with self.write() as tx:
                result = fn(tx, *args, **kwargs)
                committing = True
            return result

        def again(exc: BaseException) -> bool:
            # A connection lost before the commit took everything with it; one lost during it may have committed.
            return is_retryable(exc) or (is_disconnect(exc) and not committing)

        return retry.call(attempt, on=again, backoff=self.options.backoff(), before_retry=self._report)

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

        return retry.call(
            attempt,
            on=lambda exc: is_retryable(exc) or is_disconnect(exc),
            backoff=self.options.backoff(),
            before_retry=self._report,
        )

    def wait(self) -> None:
        """Connect, trying again `max_retries` times (-1: for ever) every `retry_interval` seconds."""
        attempt = 0
        while True:
            try:
                with self.read() as tx:
                    tx.execute(sa.select(sa.literal(1)))
            except sa.exc.OperationalError:
                attempt += 1
                if 0 <= self.options.max_retries < attempt:
                    raise
                LOG.warning("database %s does not answer, attempt %d", self.name, attempt)
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
        self._shown = urls.shown(url)
        self._reason = reason

    @property
    def name(self) -> str:
        return self._shown

    @property
    def engine(self) -> sa.Engine:
        """Raises OperationalError."""
        raise self._error()

    def read(self, *, replica: bool = False) -> NoReturn:
        """Raises OperationalError."""
        raise self._error()

    def write(self) -> NoReturn:
        """Raises OperationalError."""
        raise self._error()

    def dispose(self) -> None:
        """There are no connections."""

    def _error(self) -> sa.exc.OperationalError:
        return sa.exc.OperationalError(None, None, self._reason)


UNUSABLE = (sa.exc.ArgumentError, ImportError, ValueError)
"""What making a Database raises when its URL names nothing that there is."""

_NO_TABLES = frozenset({1146, "42P01", "42703"})


def lacks_tables(exc: BaseException) -> bool:
    """Whether a table (or a column of a newer revision) is not there: the database was not created, or not migrated."""
    original = getattr(exc, "orig", None)
    if not isinstance(exc, sa.exc.ProgrammingError) or original is None:
        return False
    code = getattr(original, "pgcode", None) or next(iter(original.args), None)
    return code in _NO_TABLES


def is_retryable(exc: BaseException) -> bool:
    """Whether the transaction lost to another one and may succeed when repeated whole."""
    original = getattr(exc, "orig", None)
    if not isinstance(exc, sa.exc.DBAPIError) or original is None:
        return False
    if isinstance(original, sqlite3.OperationalError):
        return "locked" in str(original) or "busy" in str(original)
    if getattr(original, "pgcode", None) in _PG_RETRYABLE:
        return True
    return bool(original.args) and original.args[0] in _MYSQL_RETRYABLE


def is_disconnect(exc: BaseException) -> bool:
    """Whether the connection was lost; a write may or may not have happened."""
    return isinstance(exc, sa.exc.DBAPIError) and exc.connection_invalidated


def _create(url: sa.URL, options: DatabaseOptions) -> sa.Engine:
    arguments: dict[str, Any] = {"pool_recycle": options.connection_recycle_time}
    if url.get_backend_name() == "sqlite":
        if url.database in (None, "", ":memory:"):
            raise ValueError("a SQLite database must be a file: every connection to one in memory has its own")
        arguments["connect_args"] = {"timeout": SQLITE_BUSY_SECONDS, "check_same_thread": False}
    else:
        arguments["pool_reset_on_return"] = None
        if url.get_driver_name() == "psycopg2":
            arguments["connect_args"] = {k: v for k, v in silence.LIBPQ.items() if k not in url.query}
    if options.max_pool_size is not None:
        arguments["pool_size"] = options.max_pool_size
    if options.max_overflow is not None:
        arguments["max_overflow"] = options.max_overflow
    if options.pool_timeout is not None:
        arguments["pool_timeout"] = options.pool_timeout
    engine = sa.create_engine(url, **arguments)
    _PREPARE[url.get_backend_name()](engine, options)
    if options.connection_debug >= 50:
        level = logging.DEBUG if options.connection_debug >= 100 else logging.INFO
        logging.getLogger("sqlalchemy.engine").setLevel(level)
    return engine


def _prepare_sqlite(engine: sa.Engine, options: DatabaseOptions) -> None:
    # NORMAL under WAL survives the death of the process; only a power cut may lose the newest commits, never the file.
    synchronous = "NORMAL" if options.sqlite_synchronous else "OFF"

    @sa.event.listens_for(engine, "connect")
    def connected(connection: Any, _record: Any) -> None:
        connection.isolation_level = None
        cursor = connection.cursor()
        for pragma in ("journal_mode=WAL", f"synchronous={synchronous}", "foreign_keys=ON"):
            cursor.execute(f"PRAGMA {pragma}")
        cursor.close()

    @sa.event.listens_for(engine, "begin")
    def begun(connection: sa.Connection) -> None:
        statement = "BEGIN IMMEDIATE" if connection.get_execution_options().get(_WRITE) else "BEGIN"
        raw: Any = connection.connection.driver_connection
        try:
            raw.execute(statement)
        except sqlite3.OperationalError as exc:
            raise sa.exc.OperationalError(statement, None, exc) from exc


def _prepare_mysql(engine: sa.Engine, options: DatabaseOptions) -> None:
    _check_idle_connections(engine)
    if engine.dialect.driver == "pymysql":
        # Only who has such a database needs its driver.
        from kilonova.db import mysql

        sa.event.listen(engine, "do_connect", mysql.connect)

    @sa.event.listens_for(engine, "connect")
    def connected(connection: Any, _record: Any) -> None:
        cursor = connection.cursor()
        if options.mysql_sql_mode:
            cursor.execute("SET SESSION sql_mode = %s", (options.mysql_sql_mode,))
        if options.mysql_wsrep_sync_wait is not None:
            cursor.execute("SET SESSION wsrep_sync_wait = %s", (options.mysql_wsrep_sync_wait,))
        cursor.close()

    @sa.event.listens_for(engine, "reset")
    def returned(connection: Any, _record: Any, state: Any) -> None:
        # The server said with its last answer whether a transaction is open, so most returns need no message.
        if not state.terminate_only and connection.server_status & MYSQL_IN_TRANSACTION:
            connection.rollback()


def _prepare_postgresql(engine: sa.Engine, _options: DatabaseOptions) -> None:
    _check_idle_connections(engine)

    @sa.event.listens_for(engine, "reset")
    def returned(connection: Any, _record: Any, state: Any) -> None:
        if not state.terminate_only:
            connection.rollback()


def _check_idle_connections(engine: sa.Engine) -> None:
    """Ask a server whether it is still there only through connections that were not used for a while."""

    @sa.event.listens_for(engine, "checkin")
    def put_back(_connection: Any, record: Any) -> None:
        record.info["used"] = time.monotonic()

    @sa.event.listens_for(engine, "checkout")
    def taken(connection: Any, record: Any, _proxy: Any) -> None:
        used = record.info.get("used")
        if used is None or time.monotonic() - used < IDLE_SECONDS:
            return
        try:
            engine.dialect.do_ping(connection)
        except engine.dialect.loaded_dbapi.Error as exc:
            raise sa.exc.DisconnectionError(str(exc)) from exc


_PREPARE: dict[str, Callable[[sa.Engine, DatabaseOptions], None]] = {
    "sqlite": _prepare_sqlite,
    "mysql": _prepare_mysql,
    "postgresql": _prepare_postgresql,
}
