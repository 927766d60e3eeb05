"""Our tables beside those of Nova in a cell: in a room of their own, where there are rooms and it may be made."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest
import sqlalchemy as sa
from tests.real.database_fixtures import database_server, new_databases

from kilonova.db import ended_flows, flows
from kilonova.db.engine import Database
from kilonova.db.migrations import room, sync
from kilonova.flow.store import NewFlow, Scope, State

__all__ = ["database_server"]

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]


@pytest.fixture
def cell(database_server: str) -> Iterator[Database]:
    with new_databases(database_server, ["own"]) as (url,):
        database = Database(url, db_retry_interval=0.05)
        yield database
        database.dispose()


def tables(database: Database) -> set[str]:
    return set(sa.inspect(database.engine).get_table_names())


def offered(database: Database) -> NewFlow:
    new = NewFlow(op="delete", subject_id="i", frame={"a": 1}, deadline=60, grace=0)
    assert database.run(flows.offer, new)
    return new


def work(database: Database, flow: NewFlow) -> None:
    store = flows.FlowTable(database, "cell")
    assert not store.offer(msgspec.structs.replace(flow, id="another"))
    (taken,) = store.take_due("me", 60_000, 5, [Scope("delete")])
    assert (taken.id, taken.frame) == (flow.id, {"a": 1})
    assert store.renew({flow.id: taken.lease_epoch}, 60_000) == {flow.id}
    assert database.run(flows.abandon, flow.id, who="me", why="enough")
    assert [event.detail for event in database.query(flows.events, flow.id)] == ["enough"]
    assert [row.state for row in database.query(flows.history, "i")] == [State.ABANDONED]
    assert database.run(ended_flows.frames_cut, flows.now_ms() + 1000) == 1
    assert database.run(ended_flows.frames_cut, flows.now_ms() + 1000) == 0
    assert database.run(ended_flows.flows_purge, flows.now_ms() + 1000) == 1
    assert database.query(flows.events, flow.id) == []


def test_flows_work_in_their_room_and_nova_sees_no_table_of_ours(cell: Database) -> None:
    sync.sync_main(cell)
    assert not tables(cell) & set(sync.OWN.tables)
    assert not sync.pending(cell, sync.MAIN)
    work(cell, offered(cell))


def test_tables_that_lie_among_novas_move_with_their_rows(cell: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(room, "settle", lambda *_: False)
        sync.sync_main(cell)
    assert tables(cell) > set(sync.OWN.tables)
    flow = offered(cell)
    sync.sync_main(cell)
    assert not tables(cell) & set(sync.OWN.tables)
    assert not sync.pending(cell, sync.MAIN)
    work(cell, flow)


def test_tables_of_a_newer_revision_join_those_in_the_room(cell: Database) -> None:
    sync.sync_main(cell)
    with cell.write() as tx:
        for name in ("kn_turn", "kn_group_host", "kn_loop"):
            room.drop(tx, [name])
        tx.exec_driver_sql("UPDATE kn_alembic_version SET version_num = '7c1f0b6a2d01'")
    flow = offered(cell)
    sync.sync_main(cell)
    assert not tables(cell) & set(sync.OWN.tables)
    assert not sync.pending(cell, sync.MAIN)
    with cell.engine.connect() as connection:
        assert room.names(connection) > set(sync.OWN.tables)
    work(cell, flow)


def test_a_move_that_was_cut_off_goes_on(cell: Database) -> None:
    sync.sync_main(cell)
    flow = offered(cell)
    with cell.write() as tx:
        tx.exec_driver_sql("DROP VIEW kn_flow")
    sync.sync_main(cell)
    work(cell, flow)


def test_an_account_that_may_make_no_room_has_them_among_novas(
    cell: Database, caplog: pytest.LogCaptureFixture
) -> None:
    mysql = cell.dialect == "mysql"
    host = "@'127.0.0.1'" if mysql else ""
    with cell.write() as tx:
        for statement in _POOR_ACCOUNT["mysql" if mysql else "postgresql"]:
            tx.exec_driver_sql(statement.format(database=cell.url.database, host=host))
    poor = Database(cell.url.set(username="kn_poor", password="p").render_as_string(hide_password=False))
    try:
        sync.sync_main(poor)
        assert tables(poor) > set(sync.OWN.tables)
        assert "may not make" in caplog.text
        work(poor, offered(poor))
        sync.drop_own(poor)
        assert not tables(poor) & set(sync.OWN.tables)
    finally:
        poor.dispose()
        with cell.write() as tx:
            if not mysql:
                tx.exec_driver_sql("DROP OWNED BY kn_poor")
            tx.exec_driver_sql(f"DROP USER kn_poor{host}")


_POOR_ACCOUNT = {
    "mysql": (
        "CREATE USER kn_poor{host} IDENTIFIED BY 'p'",
        "GRANT ALL ON {database}.* TO kn_poor{host}",
    ),
    "postgresql": (
        "CREATE USER kn_poor PASSWORD 'p'",
        "GRANT ALL ON SCHEMA public TO kn_poor",
    ),
}


def test_dropped_with_their_room_and_made_anew(cell: Database) -> None:
    sync.sync_main(cell)
    rooms = set(sa.inspect(cell.engine).get_schema_names())
    sync.drop_own(cell)
    assert sync.version(cell, sync.OWN) is None
    inspector = sa.inspect(cell.engine)
    assert not [name for name in inspector.get_view_names() if name.startswith("kn_")]
    assert len(rooms - set(inspector.get_schema_names())) == 1
    sync.drop_own(cell)
    sync.sync_main(cell)
    work(cell, offered(cell))
