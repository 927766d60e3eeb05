"""A database server that hangs (SIGSTOP) while its machine confirms what it is sent: nobody waits for it for ever."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from tests.real.database_fixtures import database_server

from kilonova import conf as configuration
from kilonova.base import clock
from kilonova.db import connecting, silence
from kilonova.db.cells import Cell, CellDown, Cells
from kilonova.db.engine import Database, Tx
from kilonova.db.failures import LostError, SilentError

__all__ = ["database_server"]

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

SECONDS = 2.0
BOUND = 15.0
"""Several times as long, and far from for ever."""


@pytest.fixture
def database(database_server: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Database]:
    for name in ("READ_SECONDS", "WRITE_SECONDS", "PING_SECONDS"):
        monkeypatch.setattr(silence, name, SECONDS)
    monkeypatch.setitem(silence.LIBPQ, "connect_timeout", 2)
    mysql = "mysql" in database_server
    url = database_server.rstrip("/") + ("/mysql?connect_timeout=2" if mysql else "/postgres")
    made = Database(url, db_retry_interval=0.05)
    yield made
    made.dispose()


@contextlib.contextmanager
def hanging(database: Database) -> Iterator[None]:
    """The server's processes are stopped; what is sent to them waits in the kernel."""
    numbers = _processes(database)
    for number in numbers:
        os.kill(number, signal.SIGSTOP)
    try:
        yield
    finally:
        for number in numbers:
            os.kill(number, signal.SIGCONT)


def _processes(database: Database) -> list[int]:
    if database.dialect == "mysql":
        return [int(Path(database.query(_text, "SELECT @@pid_file")).read_text())]
    first = int(Path(database.query(_text, "SHOW data_directory"), "postmaster.pid").read_text().split()[0])
    stats = [path.read_text().rpartition(")")[2].split() for path in Path("/proc").glob("[0-9]*/stat")]
    numbers = [int(path.parent.name) for path in Path("/proc").glob("[0-9]*/stat")]
    return [first, *(number for number, stat in zip(numbers, stats, strict=False) if int(stat[1]) == first)]


def _text(tx: Tx, statement: str) -> str:
    return str(tx.exec_driver_sql(statement).scalar_one())


def _answer(tx: Tx) -> str:
    return _text(tx, "SELECT 42")


@contextlib.contextmanager
def _soon() -> Iterator[None]:
    began = clock.monotonic()
    yield
    assert clock.monotonic() - began < BOUND


def test_a_read_ends_at_its_time_and_is_not_repeated(database: Database) -> None:
    assert database.query(_answer) == "42"
    tries: list[int] = []

    def look(tx: Tx) -> str:
        tries.append(1)
        return _answer(tx)

    with hanging(database), _soon(), pytest.raises(SilentError):
        database.query(look)
    assert tries == [1]
    assert database.query(_answer) == "42"


def test_a_write_ends_at_its_time(database: Database) -> None:
    assert database.query(_answer) == "42"
    with hanging(database), _soon(), pytest.raises(SilentError):
        database.run(_answer)
    assert database.run(_answer) == "42"


def test_no_connection_is_waited_for_longer(database: Database) -> None:
    other = Database(database.url.render_as_string(hide_password=False))
    with hanging(database), _soon(), pytest.raises(LostError):
        other.query(_answer)
    assert other.query(_answer) == "42"
    other.dispose()


def test_an_old_connection_is_not_tried_for_longer(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    assert database.query(_answer) == "42"
    monkeypatch.setattr(connecting, "IDLE_SECONDS", 0.0)
    with hanging(database), _soon(), pytest.raises(LostError):
        database.query(_answer)
    assert database.query(_answer) == "42"


@pytest.mark.parametrize("verb", ["query", "run"])
def test_the_end_of_a_transaction_is_not_waited_for_longer(database: Database, verb: str) -> None:
    assert database.query(_answer) == "42"
    with contextlib.ExitStack() as stopped:

        def look(tx: Tx) -> None:
            _answer(tx)
            stopped.enter_context(hanging(database))

        with _soon(), pytest.raises(SilentError):
            getattr(database, verb)(look)
    assert database.query(_answer) == "42"


def test_what_a_new_connection_is_asked_is_not_waited_for_longer(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(silence, "CONNECT_SECONDS", SECONDS)
    other = Database(database.url.render_as_string(hide_password=False))
    with contextlib.ExitStack() as stopped:

        def connected(*_: object) -> None:
            stopped.enter_context(hanging(database))

        sa.event.listen(other.engine, "connect", connected, insert=True, once=True)
        with _soon(), pytest.raises(LostError):
            other.query(_answer)
    assert other.query(_answer) == "42"
    other.dispose()


def test_the_cell_is_down(database: Database) -> None:
    conf = configuration.new()
    conf([], default_config_files=[])
    cell = Cell(1, "u", "n", "none:///", database, False)
    database.query(_answer)
    with hanging(database), _soon():
        assert isinstance(Cells(conf).ask(lambda cell: cell.database.query(_answer), cell), CellDown)


def test_what_answers_piece_by_piece_may_take_longer(database: Database) -> None:
    nap = "SELECT SLEEP(1)" if database.dialect == "mysql" else "SELECT pg_sleep(1)"

    def slow(tx: Tx) -> str:
        for _ in range(4):
            tx.exec_driver_sql(nap).all()
        return _answer(tx)

    assert database.query(slow) == "42"


def test_an_operators_command_waits(database: Database) -> None:
    patient = Database(database.url.render_as_string(hide_password=False), patient=True)
    nap = "SELECT SLEEP(5)" if database.dialect == "mysql" else "SELECT pg_sleep(5)"
    patient.query(lambda tx: tx.exec_driver_sql(nap).all())
    patient.dispose()
    with pytest.raises(SilentError):
        database.query(lambda tx: tx.exec_driver_sql(nap).all())


def test_no_handle_is_left_behind(database: Database) -> None:
    database.query(_answer)
    database.dispose()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        with contextlib.suppress(sa.exc.DBAPIError):
            database.query(lambda tx: tx.exec_driver_sql("SELECT FROM FROM"))
        database.query(_answer)
        database.dispose()
    assert len(os.listdir("/proc/self/fd")) <= before
