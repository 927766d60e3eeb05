"""Transactions: writers take turns, losers try again, constraints hold."""

from __future__ import annotations

import logging
import sqlite3
import ssl
import threading
from pathlib import Path
from typing import Any

import pymysql
import pytest
import sqlalchemy as sa
from oslo_config import cfg

from kilonova import conf as configuration
from kilonova.db import mysql, query, urls
from kilonova.db.cell.tables import INSTANCE_FAULTS, SERVICES
from kilonova.db.connecting import DatabaseOptions
from kilonova.db.engine import Database, NestedWriteError
from kilonova.db.failures import is_retryable
from kilonova.db.outcomes import DuplicateError


def service(host: str) -> dict[str, object]:
    return {"host": host, "binary": "nova-compute", "topic": "compute"}


def count(db: Database) -> int:
    with db.read() as tx:
        return int(tx.execute(sa.select(sa.func.count()).select_from(SERVICES)).scalar_one())


def test_committed_at_the_end_and_rolled_back_on_an_exception(cell_db: Database) -> None:
    with cell_db.write() as tx:
        query.insert(tx, SERVICES, service("a"))

    def fail() -> None:
        with cell_db.write() as tx:
            query.insert(tx, SERVICES, service("b"))
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert count(cell_db) == 1


def test_concurrent_writers_of_two_pools_lose_nothing(cell_db: Database) -> None:
    other = Database(str(cell_db.url))
    errors: list[BaseException] = []

    def write(db: Database, name: str) -> None:
        try:
            for n in range(10):
                db.run(query.insert, SERVICES, service(f"{name}{n}"))
        except BaseException as exc:
            errors.append(exc)

    threads = [threading.Thread(target=write, args=((cell_db, other)[n % 2], f"t{n}-")) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    other.dispose()
    assert errors == []
    assert count(cell_db) == 60


def test_readers_do_not_wait_for_a_writer(cell_db: Database) -> None:
    with cell_db.write() as tx:
        query.insert(tx, SERVICES, service("a"))
        assert count(cell_db) == 0
    assert count(cell_db) == 1


def test_write_inside_a_write_is_refused_at_once(cell_db: Database) -> None:
    with cell_db.write(), pytest.raises(NestedWriteError), Database(str(cell_db.url)).write():
        pass


def test_foreign_keys_hold(cell_db: Database) -> None:
    with pytest.raises(sa.exc.IntegrityError):
        cell_db.run(query.insert, INSTANCE_FAULTS, {"instance_uuid": "unknown", "code": 500})


def test_duplicates_are_told_from_other_violations(cell_db: Database) -> None:
    cell_db.run(query.insert, SERVICES, service("a"))
    with pytest.raises(DuplicateError):
        cell_db.run(query.insert, SERVICES, {**service("a"), "deleted": 0})
    with pytest.raises(sa.exc.IntegrityError):
        cell_db.run(query.insert, INSTANCE_FAULTS, {"instance_uuid": "i", "code": None})


def test_lost_transaction_is_repeated_whole(cell_db: Database) -> None:
    attempts = []

    def flaky(tx: sa.Connection) -> str:
        query.insert(tx, SERVICES, service("a"))
        attempts.append(1)
        if len(attempts) < 3:
            raise sa.exc.OperationalError("x", None, sqlite3.OperationalError("database is locked"))
        return "done"

    assert cell_db.run(flaky) == "done"
    assert len(attempts) == 3
    assert count(cell_db) == 1


def test_other_errors_are_not_repeated(cell_db: Database) -> None:
    attempts = []

    def broken(tx: sa.Connection) -> None:
        attempts.append(1)
        tx.execute(sa.text("SELECT nonsense FROM nowhere"))

    with pytest.raises(sa.exc.OperationalError):
        cell_db.run(broken)
    assert len(attempts) == 1


class Original(Exception):
    pgcode: str | None = None


def wrapped(original: Exception) -> sa.exc.DBAPIError:
    return sa.exc.OperationalError("statement", None, original)


@pytest.mark.parametrize(("code", "again"), [(1213, True), (1205, True), (1020, True), (1062, False), (2013, False)])
def test_mysql_errors_worth_another_try(code: int, again: bool) -> None:
    assert is_retryable(wrapped(Original(code, "message"))) is again


@pytest.mark.parametrize(("code", "again"), [("40P01", True), ("40001", True), ("23505", False)])
def test_postgresql_errors_worth_another_try(code: str, again: bool) -> None:
    original = Original("message")
    original.pgcode = code
    assert is_retryable(wrapped(original)) is again


def test_database_in_memory_is_refused() -> None:
    with pytest.raises(ValueError, match="must be a file"):
        Database("sqlite://")


@pytest.mark.parametrize(
    ("given", "used"),
    [
        ("mysql://u:p@h/n", "mysql+pymysql://u:p@h/n"),
        ("mysql+pymysql://u:p@h/n?charset=utf8", "mysql+pymysql://u:p@h/n?charset=utf8"),
        ("postgresql://h/n", "postgresql+psycopg2://h/n"),
        ("sqlite:////x/y.db", "sqlite:////x/y.db"),
    ],
)
def test_urls_get_our_drivers(given: str, used: str) -> None:
    assert urls.text(urls.parse(given)) == used


def test_parameters_are_added_to_the_url() -> None:
    assert urls.text(urls.parse("mysql+pymysql://h/n?charset=utf8", "read_timeout=5")) == (
        "mysql+pymysql://h/n?charset=utf8&read_timeout=5"
    )


def test_passwords_are_hidden() -> None:
    assert Database("mysql+pymysql://u:secret@h/n").name == "mysql+pymysql://u:****@h/n"
    assert "se" not in Database("mysql+pymysql://u:se/cr@et@h/n").name
    with pytest.raises(sa.exc.ArgumentError) as refused:
        Database("mysql+pymysql://u:secr@h:et@h/n")
    assert "et" not in str(refused.value).replace("the", "")


def test_what_is_written_is_in_no_error_and_no_log(cell_db: Database, caplog: pytest.LogCaptureFixture) -> None:
    cell_db.run(query.insert, SERVICES, {"host": "s3cret", "binary": "b", "topic": "t"})
    noisy = Database(str(cell_db.url), connection_debug=100)
    with caplog.at_level("DEBUG"), pytest.raises(sa.exc.IntegrityError) as refused:
        noisy.run(lambda tx: tx.execute(SERVICES.insert(), {"host": "s3cret", "binary": "b", "topic": "t"}))
    logging.getLogger("sqlalchemy.engine").setLevel(logging.NOTSET)
    noisy.dispose()
    assert "INSERT" in str(refused.value)
    assert "s3cret" not in str(refused.value) + caplog.text


def test_suffix_goes_behind_the_name() -> None:
    assert urls.with_suffix("mysql+pymysql://u:p@h/nova?charset=utf8", "_cell0") == (
        "mysql+pymysql://u:p@h/nova_cell0?charset=utf8"
    )


def test_options_are_those_of_the_group(tmp_path: Path) -> None:
    conf: cfg.ConfigOpts = configuration.new()
    conf([], default_config_files=[])
    conf.set_override("connection", f"sqlite:///{tmp_path}/x.db", "database")
    conf.set_override("max_pool_size", 3, "database")
    conf.set_override("sqlite_synchronous", False, "database")
    conf.set_override("db_max_retries", 2, "database")
    database = Database.from_group(conf.database)
    assert database.engine.pool.size() == 3  # type: ignore[attr-defined]
    assert database.options.backoff().attempts == 3
    with database.read() as tx:
        assert tx.exec_driver_sql("PRAGMA synchronous").scalar() == 0
        assert tx.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"


def test_without_end_is_what_minus_one_retries_mean() -> None:
    assert DatabaseOptions(db_max_retries=-1).backoff().attempts > 1_000_000
    assert DatabaseOptions(db_max_retries=0).backoff().attempts == 1


def test_defaults_are_the_groups_defaults() -> None:
    conf = configuration.new()
    conf([], default_config_files=[])
    for group in (conf.database, conf.api_database):
        assert DatabaseOptions.from_group(group) == DatabaseOptions()


def test_server_that_does_not_answer_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    database = Database("mysql+pymysql://u:p@127.0.0.1:1/n", max_retries=2, retry_interval=0)
    tried = connections_tried(monkeypatch)
    with pytest.raises(sa.exc.OperationalError):
        database.wait()
    assert tried == ["n"] * 3


def connections_tried(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """From now on no MySQL server answers; the databases that were asked for."""
    tried: list[str] = []

    def away(*_: Any, database: str, **__: Any) -> None:
        tried.append(database)
        raise pymysql.err.OperationalError(2003, "nobody listens")

    monkeypatch.setattr(mysql, "SharingConnection", away)
    return tried


def test_connections_to_mysql_read_certificates_only_where_they_ask_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    from kilonova.db import mysql

    mysql._CONTEXTS.clear()
    read: list[object] = []
    real = ssl.create_default_context
    monkeypatch.setattr(ssl, "create_default_context", lambda **options: (read.append(options), real(**options))[1])
    plain = [mysql.SharingConnection(defer_connect=True) for _ in range(3)]
    assert len({id(one.ctx) for one in plain}) == 1
    assert plain[0].ctx.verify_mode is ssl.CERT_NONE
    assert not read
    checking = [mysql.SharingConnection(defer_connect=True, ssl_verify_cert=True) for _ in range(3)]
    assert len(read) == 1
    assert checking[0].ctx.verify_mode is ssl.CERT_REQUIRED


def test_a_database_at_mysql_makes_such_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    from kilonova.db import mysql

    made: list[dict[str, object]] = []

    class Refusing(mysql.SharingConnection):
        def __init__(self, **options: object) -> None:
            made.append(options)
            raise sa.exc.DBAPIError("", None, OSError())

    monkeypatch.setattr(mysql, "SharingConnection", Refusing)
    with pytest.raises(sa.exc.DBAPIError), Database("mysql+pymysql://u:p@127.0.0.1:1/x", db_max_retries=0).read():
        pass
    assert made[0]["port"] == 1
