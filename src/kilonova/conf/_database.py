"""How to connect to a database: the same options for every database group. Obeyed by db/engine.py."""

from __future__ import annotations

from oslo_config import cfg


def options() -> list[cfg.Opt]:
    """New option objects for one group."""
    return [*_where(), *_pool(), *_retries(), *_dialects()]


def _where() -> list[cfg.Opt]:
    return [
        cfg.StrOpt("connection", secret=True, help="URL of the database: mysql+pymysql://user:pass@host/name."),
        cfg.StrOpt("slave_connection", secret=True, help="URL of a read-only copy, for answers that may be old."),
        cfg.StrOpt("connection_parameters", default="", help="Parameters added to the URL: name=value&name=value."),
        cfg.IntOpt("connection_debug", min=0, max=100, default=0, help="50: log SQL statements; 100: log results too."),
    ]


def _pool() -> list[cfg.Opt]:
    return [
        cfg.IntOpt(
            "connection_recycle_time", default=3600, help="Seconds after which a pooled connection is replaced."
        ),
        cfg.IntOpt("max_pool_size", default=5, help="Connections that are kept open. 0: any number."),
        cfg.IntOpt("max_overflow", default=50, help="Connections opened beyond max_pool_size while there is need."),
        cfg.IntOpt("pool_timeout", help="Seconds to wait for a free connection when all are in use."),
    ]


def _retries() -> list[cfg.Opt]:
    return [
        cfg.IntOpt("max_retries", default=10, help="Attempts to reach the server at start. -1: no end."),
        cfg.IntOpt("retry_interval", default=10, help="Seconds between attempts to reach the server."),
        cfg.IntOpt("db_max_retries", default=20, help="How often a transaction that lost to a deadlock is repeated."),
        cfg.IntOpt("db_retry_interval", default=1, help="The first wait in seconds is drawn from 0 to this."),
        cfg.BoolOpt("db_inc_retry_interval", default=True, help="Whether each wait may be longer than the last."),
        cfg.IntOpt("db_max_retry_interval", default=10, help="The longest wait in seconds before a repetition."),
    ]


def _dialects() -> list[cfg.Opt]:
    return [
        cfg.StrOpt("mysql_sql_mode", default="TRADITIONAL", help="SQL mode of MySQL sessions. Empty: the server's."),
        cfg.IntOpt("mysql_wsrep_sync_wait", help="Galera: which statements wait until the node has caught up."),
        cfg.BoolOpt("sqlite_synchronous", default=True, help="Whether SQLite waits until data is on the disk."),
    ]
