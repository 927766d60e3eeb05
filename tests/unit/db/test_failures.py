"""Only a lost connection counts as a database that is away."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pymysql
import pytest
import sqlalchemy as sa

from kilonova.contract import context, exceptions
from kilonova.db import failures, mysql
from kilonova.db.cell import instances
from kilonova.db.cells import Cell, CellDown, Cells
from kilonova.db.engine import Database, UnusableDatabase
from kilonova.db.failures import LOST, LostError, UnreachableError, is_disconnect, is_refused
from kilonova.db.objects import instances as instance_objects
from kilonova.db.objects import migration as migration_objects
from kilonova.db.outcomes import InvalidFilterError


class Original(Exception):
    pgcode: str | None = None


def server_says(code: int | str) -> sa.exc.DBAPIError:
    original = Original(code, "message")
    original.pgcode = code if isinstance(code, str) else None
    return sa.exc.OperationalError("SELECT", None, original)


def asked(conf: Any, error: Exception) -> Any:
    def fail(_cell: Cell) -> None:
        raise error

    cells = Cells(conf)
    cell = Cell(1, "u", "n", "none:///", UnusableDatabase("nonsense", ValueError()), False)
    return cells.ask(fail, cell), cells.scatter(fail, [cell])["u"]


@pytest.fixture
def conf() -> Any:
    from kilonova import conf as configuration

    made = configuration.new()
    made([], default_config_files=[])
    return made


@pytest.mark.parametrize(
    "code", [1064, 1139, 1142, 1205, 1213, 1366, 1054, "22P02", "40P01", "42501", "42703", "42601"]
)
def test_an_error_of_a_database_that_is_there_hides_no_server(conf: Any, code: int | str) -> None:
    with pytest.raises(sa.exc.DBAPIError):
        asked(conf, server_says(code))


@pytest.mark.parametrize("error", [LostError("SELECT", None, OSError()), UnreachableError(None, None, OSError())])
def test_a_lost_connection_is_a_lost_cell(conf: Any, error: Exception) -> None:
    assert all(isinstance(answer, CellDown) for answer in asked(conf, error))


def test_a_connection_that_cannot_be_made_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    away = Database(f"sqlite:///{tmp_path}/no/such/folder.db")
    with pytest.raises(UnreachableError):
        away.query(lambda tx: tx.execute(sa.text("SELECT 1")))

    def refuse(*_: Any, **__: Any) -> None:
        raise pymysql.err.OperationalError(1045, "Access denied")

    monkeypatch.setattr(mysql, "SharingConnection", refuse)
    with pytest.raises(UnreachableError):
        Database("mysql+pymysql://u:p@127.0.0.1:1/n").query(lambda tx: tx)


def test_what_sqlite_refuses_is_no_loss(cell_db: Database) -> None:
    for statement in ("SELECT FROM", "SELECT no_such FROM instances", "INSERT INTO instances (id) VALUES ('x')"):
        with pytest.raises(sa.exc.DBAPIError) as refused:
            cell_db.run(lambda tx, text: tx.exec_driver_sql(text), statement)
        assert not isinstance(refused.value, LOST)
        assert not failures.lacks_tables(refused.value)


def test_a_server_that_is_shut_down_has_lost_the_connection(cell_db: Database) -> None:
    found: list[bool] = []
    for code in (1053, "57P01", 1927):
        monkey = Original(code)
        monkey.pgcode = code if isinstance(code, str) else None
        found.append(failures.code(sa.exc.OperationalError("SELECT", None, monkey)) in failures._LEAVING)
    assert found == [True] * 3


def test_a_read_is_repeated_on_a_lost_connection_and_not_for_ever(cell_db: Database) -> None:
    tries: list[int] = []

    def look(tx: Any, losses: int) -> str:
        tries.append(1)
        if len(tries) <= losses:
            raise LostError("SELECT", None, OSError(), connection_invalidated=True)
        return "read"

    assert cell_db.query(look, 1) == "read"
    tries.clear()
    with pytest.raises(LostError):
        cell_db.query(look, 99)
    assert 1 < len(tries) < 5


def test_a_write_that_was_lost_in_its_commit_is_not_repeated(
    cell_db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries: list[int] = []

    def lost(*_: Any) -> None:
        raise LostError(None, None, OSError(), connection_invalidated=True)

    monkeypatch.setattr(cell_db.engine.dialect, "do_commit", lost)
    with pytest.raises(LostError):
        cell_db.run(lambda tx: tries.append(1))
    assert tries == [1]


def test_a_silent_database_is_not_asked_again(cell_db: Database) -> None:
    tries: list[int] = []

    def look(tx: Any) -> None:
        tries.append(1)
        raise failures.SilentError(None, None, TimeoutError(), connection_invalidated=True)

    for ask in (cell_db.query, cell_db.run):
        with pytest.raises(failures.SilentError):
            ask(look)
    assert tries == [1, 1]


def test_text_that_a_driver_does_not_send_is_a_refused_value(
    cell_db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What psycopg2 says of a NUL is a plain ValueError."""

    def refuse(*_: Any) -> None:
        raise ValueError("A string literal cannot contain NUL (0x00) characters.")

    monkeypatch.setattr(cell_db.engine.dialect, "do_execute", refuse)
    for ask in (cell_db.query, cell_db.run):
        with pytest.raises(failures.DatabaseError) as refused:
            ask(lambda tx: tx.execute(sa.select(1).where(sa.literal("a\0") == "b")))
        assert is_refused(refused.value)
        assert not failures.is_retryable(refused.value)
        assert not failures.is_disconnect(refused.value)
        assert "a\0" not in str(refused.value)


@pytest.mark.parametrize(
    "filters",
    [
        {"host": "a\0"},
        {"host": ["a", "a\0"]},
        {"display_name": "\0"},
        {"tags": ["\0"]},
        {"metadata": {"\0": "a"}},
        {"metadata": [{"a": "\0"}]},
        {"uuid": "\0"},
    ],
)
def test_a_nul_in_a_filter_is_refused_by_every_database_alike(cell_db: Database, filters: dict[str, Any]) -> None:
    for ask in (instances.instance_list, instances.instance_uuids, instances.instance_count):
        with pytest.raises(InvalidFilterError):
            cell_db.query(ask, filters)


@pytest.mark.parametrize("ask", [instance_objects.get_by_filters, migration_objects.get_by_filters])
def test_a_nul_in_a_filter_of_a_host_is_refused_by_every_database_alike(cell_db: Database, ask: Any) -> None:
    for wanted in ("a\0", ["a\0"]):
        with pytest.raises(exceptions.Invalid):
            cell_db.query(ask, context.admin(), {"host": wanted})


@pytest.mark.parametrize("code", [1139, 1366, 1292, 1267, "22021", "22003", "2201B"])
def test_a_refused_value_is_told_from_other_errors(code: int | str) -> None:
    assert is_refused(server_says(code))


@pytest.mark.parametrize("code", [1064, 1213, 2013, "40001", "42601", "57014"])
def test_other_errors_refuse_no_value(code: int | str) -> None:
    assert not is_refused(server_says(code))
    assert not is_disconnect(server_says(code))


def test_a_filter_that_the_database_refuses_is_the_filters_fault(
    cell_db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise server_says(1139)

    monkeypatch.setattr("kilonova.db.query.rows", refuse)
    monkeypatch.setattr("kilonova.db.query.values", refuse)
    for ask in (instances.instance_list, instances.instance_uuids):
        with pytest.raises(InvalidFilterError):
            cell_db.query(ask, {"display_name": "x"})
    with pytest.raises(InvalidFilterError):
        cell_db.query(instances.instance_count, {"instance_type_id": 2**70})


def test_other_errors_are_no_filters_fault(cell_db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise sa.exc.OperationalError("SELECT", None, sqlite3.OperationalError("disk I/O error"))

    monkeypatch.setattr("kilonova.db.query.rows", fail)
    with pytest.raises(sa.exc.OperationalError):
        cell_db.query(instances.instance_list, {})
