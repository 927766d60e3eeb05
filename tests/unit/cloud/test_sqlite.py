"""The engine plug-in under which the other services live on SQLite, as oslo.db drives it."""

from __future__ import annotations

import importlib.util
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from oslo_db.sqlalchemy import engines
from sqlalchemy.engine import Engine

import kilonova.cloud

FILE = Path(kilonova.cloud.__file__).parent / "foreign" / "kilonova_sqlite.py"
TABLE = sa.Table("t", sa.MetaData(), sa.Column("id", sa.Integer, primary_key=True), sa.Column("n", sa.Integer))


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    spec = importlib.util.spec_from_file_location("kilonova_sqlite", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    one = engines.create_engine(f"sqlite:///{tmp_path}/t.db")
    module.Plugin(one.url, {}).engine_created(one)
    one.dispose()
    TABLE.create(one)
    with one.begin() as tx:
        tx.execute(TABLE.insert().values(id=1, n=0))
    yield one
    one.dispose()


def value(tx: sa.Connection) -> int:
    return int(tx.execute(sa.select(TABLE.c.n)).scalar_one())


def test_a_reader_does_not_wait_for_a_writer(engine: Engine) -> None:
    with engine.begin() as writer:
        writer.execute(TABLE.update().values(n=1))
        with engine.begin() as reader:
            assert value(reader) == 0


def test_reading_first_and_writing_later_survives_another_writer(engine: Engine) -> None:
    with engine.begin() as late:
        assert value(late) == 0
        with engine.begin() as early:
            early.execute(TABLE.update().values(n=5))
        late.execute(TABLE.update().values(n=TABLE.c.n + 1))
        assert value(late) == 6
    with engine.begin() as tx:
        assert value(tx) == 6


def test_writers_take_turns(engine: Engine) -> None:
    def add() -> None:
        for _ in range(20):
            with engine.begin() as tx:
                n = tx.execute(sa.select(TABLE.c.n).with_for_update()).scalar_one()
                tx.execute(TABLE.update().values(n=n + 1))

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    with engine.begin() as tx:
        assert value(tx) == 80


def test_rollback_undoes_what_was_written_after_the_lock(engine: Engine) -> None:
    with engine.connect() as connection:
        transaction = connection.begin()
        value(connection)
        connection.execute(TABLE.update().values(n=9))
        transaction.rollback()
    with engine.begin() as tx:
        assert value(tx) == 0


def test_savepoints(engine: Engine) -> None:
    with engine.begin() as tx:
        assert value(tx) == 0
        inner = tx.begin_nested()
        tx.execute(TABLE.update().values(n=3))
        inner.rollback()
        tx.execute(TABLE.update().values(n=TABLE.c.n + 1))
    with engine.begin() as tx:
        assert value(tx) == 1


def test_a_connection_of_the_pool_begins_afresh(engine: Engine) -> None:
    for n in range(3):
        with engine.begin() as tx:
            assert value(tx) == n
            tx.execute(TABLE.update().values(n=n + 1))
