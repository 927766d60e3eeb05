"""Making connections: a driver's arguments, what a new connection is told, when an old one is tried before use."""

from __future__ import annotations

import logging
import sqlite3
import sys
from collections.abc import Callable
from typing import Any

import msgspec
import sqlalchemy as sa
from oslo_config import cfg

from kilonova.base import clock, retry
from kilonova.db import failures, patterns, silence

SQLITE_BUSY_SECONDS = 30
IDLE_SECONDS = 5.0
"""A connection unused for longer is tried before it is given out."""

WRITE = "kilonova_write"
"""The execution option of connections that write."""

MYSQL_IN_TRANSACTION = 1
"""A bit of the status in every answer of a MySQL server (protocol: SERVER_STATUS_IN_TRANS)."""


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


def create(url: sa.URL, options: DatabaseOptions) -> sa.Engine:
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
    # Passwords of servers and tokens are among the parameters: no error and no log may show them.
    engine = sa.create_engine(url, hide_parameters=True, **arguments)
    failures.watch(engine)
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
        connection.create_function("regexp", 2, patterns.function, deterministic=True)

    @sa.event.listens_for(engine, "begin")
    def begun(connection: sa.Connection) -> None:
        statement = "BEGIN IMMEDIATE" if connection.get_execution_options().get(WRITE) else "BEGIN"
        raw: Any = connection.connection.driver_connection
        try:
            raw.execute(statement)
        except sqlite3.OperationalError as exc:
            raise sa.exc.OperationalError(statement, None, exc) from exc


def _prepare_mysql(engine: sa.Engine, options: DatabaseOptions) -> None:
    _watch_connections(engine, _mysql_connect(engine))

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


def _mysql_connect(engine: sa.Engine) -> silence.Connect:
    if engine.dialect.driver != "pymysql":
        return engine.dialect.connect
    # Only who has such a database needs its driver.
    from kilonova.db import mysql

    return mysql.connect


def _prepare_postgresql(engine: sa.Engine, _options: DatabaseOptions) -> None:
    _watch_connections(engine, engine.dialect.connect)

    @sa.event.listens_for(engine, "reset")
    def returned(connection: Any, _record: Any, state: Any) -> None:
        if not state.terminate_only:
            connection.rollback()


def _watch_connections(engine: sa.Engine, connect: silence.Connect) -> None:
    """Try connections before they are given out, when they lay idle for a while or the server spoke unasked."""
    silence.keep_handles(engine, connect)

    @sa.event.listens_for(engine, "checkin")
    def put_back(_connection: Any, record: Any) -> None:
        record.info["used"] = clock.monotonic()

    @sa.event.listens_for(engine, "checkout")
    def taken(connection: Any, record: Any, _proxy: Any) -> None:
        used = record.info.get("used")
        if used is None:
            return
        if clock.monotonic() - used < IDLE_SECONDS and not silence.spoken(record.info.get(silence.SOCKET)):
            return
        try:
            with silence.bounded(record.info, silence.PING_SECONDS):
                engine.dialect.do_ping(connection)
        except engine.dialect.loaded_dbapi.Error as exc:
            raise sa.exc.DisconnectionError(str(exc)) from exc


_PREPARE: dict[str, Callable[[sa.Engine, DatabaseOptions], None]] = {
    "sqlite": _prepare_sqlite,
    "mysql": _prepare_mysql,
    "postgresql": _prepare_postgresql,
}
