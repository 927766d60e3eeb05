"""The databases on MariaDB and PostgreSQL: schemas, queries, races.

KILONOVA_TEST_MYSQL_URL and KILONOVA_TEST_PG_URL name servers to use (a user who may create databases, no database);
otherwise private ones are started where the programs exist.
"""

from __future__ import annotations

import concurrent.futures
import datetime
import subprocess
import sys
import threading
import time
from typing import Any

import pytest
import sqlalchemy as sa
from tests.contract import table_sheets
from tests.needs import inapplicable
from tests.real.database_fixtures import database_server, databases, new_databases

from kilonova.base import ids
from kilonova.cloud.daemons import wait_until
from kilonova.contract import context, exceptions
from kilonova.db import query
from kilonova.db.api import build_requests, flavors
from kilonova.db.cell import instances
from kilonova.db.cell import tables as t
from kilonova.db.cell.tables import INSTANCES, SERVICES, TAGS
from kilonova.db.engine import Database, DatabaseError
from kilonova.db.failures import lacks_tables
from kilonova.db.migrations import sync
from kilonova.db.objects import instance as store
from kilonova.db.outcomes import DuplicateError, Missing, Stale, Updated

__all__ = ["database_server", "databases"]

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

DAY = datetime.datetime(2026, 1, 1)


@pytest.fixture
def cell(databases: tuple[Database, Database]) -> Database:
    return databases[1]


@pytest.fixture
def api(databases: tuple[Database, Database]) -> Database:
    return databases[0]


def make(db: Database, project: str, minute: int = 0, **values: Any) -> str:
    new = {
        "uuid": ids.new_uuid(),
        "project_id": project,
        "user_id": "u",
        "display_name": f"server-{minute}",
        "vm_state": "active",
        "created_at": DAY + datetime.timedelta(minutes=minute),
        "vcpus": 2,
        "memory_mb": 512,
        "metadata": {"n": str(minute)},
        "tags": ["a", f"t{minute}"],
        **values,
    }
    return str(db.run(instances.instance_create, new)["uuid"])


def listed(db: Database, filters: dict[str, Any], **page: Any) -> list[str]:
    return [row["uuid"] for row in db.query(instances.instance_list, filters, **page)]


def test_schemas_equal_the_contract(databases: tuple[Database, Database]) -> None:
    for lineage, database in zip(("api", "main"), databases, strict=True):
        url = database.url.render_as_string(hide_password=False)
        assert table_sheets.differences(lineage, url) == []


def test_second_sync_changes_nothing(databases: tuple[Database, Database]) -> None:
    sync.sync_api(databases[0])
    sync.sync_main(databases[1])
    assert not sync.pending(databases[1], sync.MAIN)


@pytest.mark.parametrize("what", ["sync_api", "sync_main"])
def test_several_may_sync_at_once(database_server: str, what: str) -> None:
    program = (
        "import sys; from kilonova.db.engine import Database; from kilonova.db.migrations import sync; "
        "getattr(sync, sys.argv[1])(Database(sys.argv[2]))"
    )
    with new_databases(database_server, ("race",)) as (url,):
        running = [subprocess.Popen([sys.executable, "-c", program, what, url]) for _ in range(3)]
        assert [one.wait(120) for one in running] == [0, 0, 0]
        database = Database(url)
        assert not sync.pending(database, sync.API if what == "sync_api" else sync.MAIN)
        database.dispose()


def test_a_second_sync_reads_nothing_before_the_first_has_ended(database_server: str) -> None:
    if not database_server.startswith("postgresql"):
        inapplicable("only there a sync waits for its turn")
    waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
    with new_databases(database_server, ("turn",)) as (url,), concurrent.futures.ThreadPoolExecutor(1) as pool:
        database = Database(url)
        with database.engine.connect() as watcher:
            with sync._connection(database) as first:
                second = pool.submit(sync.sync_main, database)
                assert wait_until(lambda: watcher.exec_driver_sql(waiting).scalar_one() == 1, 30)
                first.exec_driver_sql("CREATE TABLE kn_flow (id integer)")
            second.result(60)
        assert not sync.pending(database, sync.MAIN)
        database.dispose()


def test_sync_that_was_cut_off_goes_on(database_server: str) -> None:
    with new_databases(database_server, ("cut",)) as (url,):
        database = Database(url)
        sync.sync_main(database)
        with database.write() as tx:
            tx.exec_driver_sql(f"UPDATE alembic_version SET version_num = '{sync.MAIN.revisions()[0]}'")
            # The table is in its room by then, and this was to be made next.
            tx.exec_driver_sql(f"DROP VIEW {sync.OWN.version_table}")
        sync.sync_main(database)
        assert not sync.pending(database, sync.MAIN)
        database.dispose()


def test_new_database_in_the_place_of_a_dropped_one(database_server: str) -> None:
    if not database_server.startswith("mysql"):
        inapplicable("only there a room outlives its database")
    with new_databases(database_server, ("again",)) as (url,):
        database = Database(url)
        sync.sync_main(database)
        name = database.url.database
        with database.write() as tx:
            tx.exec_driver_sql(f"DROP DATABASE {name}")
            tx.exec_driver_sql(f"CREATE DATABASE {name}")
        database.dispose()
        sync.sync_main(database)
        assert not sync.pending(database, sync.MAIN)
        assert not sync.own_among_novas(database)
        database.dispose()


@pytest.mark.parametrize("direction", ["asc", "desc"])
@pytest.mark.parametrize("key", ["host", "created_at", "display_name", "locked"])
def test_pages_are_complete_whatever_is_null(cell: Database, key: str, direction: str) -> None:
    project = ids.new_uuid()
    made = {make(cell, project, n) for n in range(5)}
    some = sorted(made)
    cell.run(instances.instance_update, some[0], {"host": "h1", "locked": True})
    cell.run(instances.instance_update, some[1], {"host": "h0", "locked": False})
    sort = [(key, direction)]
    whole = listed(cell, {"project_id": project}, sort=sort)
    paged: list[str] = []
    while page := listed(cell, {"project_id": project}, sort=sort, limit=2, marker=paged[-1] if paged else None):
        paged += page
    assert paged == whole
    assert set(whole) == made
    if key == "host":
        assert (whole[-2:] if direction == "asc" else whole[1::-1]) == [some[1], some[0]]


@pytest.mark.parametrize(
    ("filters", "count"),
    [
        ({"display_name": "server-[12]"}, 2),
        ({"display_name": "a|b"}, 0),
        ({"power_state": 1}, 1),
        ({"locked_by": "adm"}, 1),
        ({"host": [None, "h"]}, 4),
        ({"tags": ["a", "t1"]}, 1),
        ({"not-tags-any": ["t1"]}, 3),
        ({"metadata": {"n": "2"}}, 1),
        ({"hidden": True}, 0),
        ({"deleted": True}, 0),
        ({"deleted": False, "soft_deleted": False}, 4),
        ({"access_ip_v4": "^10.0.0.1$"}, 1),
    ],
)
def test_filters(cell: Database, filters: dict[str, Any], count: int) -> None:
    project = ids.new_uuid()
    first, second, *_ = [make(cell, project, n) for n in range(4)]
    cell.run(instances.instance_update, first, {"power_state": 1, "locked_by": "admin", "access_ip_v4": "10.0.0.1"})
    cell.run(instances.instance_update, second, {"host": "h"})
    assert len(listed(cell, {"project_id": project, **filters})) == count


def test_update_and_destroy_by_expectation(cell: Database) -> None:
    uuid = make(cell, ids.new_uuid())
    with cell.write() as tx:
        # The transaction has a snapshot by now, and the outcome must not be judged by it.
        assert instances.instance_get(tx, uuid) is not None
        other = Database(cell.url.render_as_string(hide_password=False))
        assert other.run(instances.instance_update, uuid, {"task_state": "deleting"}) == Updated()
        other.dispose()
        stale = instances.instance_update(tx, uuid, {"task_state": "rebooting"}, {"task_state": None})
    assert stale == Stale({"task_state": "deleting"})
    # Writing what is there already is an update, too.
    assert cell.run(instances.instance_update, uuid, {"task_state": "deleting"}, {"vm_state": "active"}) == Updated()
    assert cell.run(instances.instance_destroy, uuid) == Updated()
    assert cell.run(instances.instance_destroy, uuid) == Missing()
    assert cell.run(instances.instance_purge, uuid)


def test_of_many_who_want_a_server_one_gets_it(cell: Database) -> None:
    uuid = make(cell, ids.new_uuid())
    outcomes: list[Any] = []

    def take(name: str) -> None:
        expect = {"task_state": None}
        outcomes.append(cell.run(instances.instance_update, uuid, {"task_state": name}, expect))

    threads = [threading.Thread(target=take, args=(f"task-{n}",)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sum(isinstance(outcome, Updated) for outcome in outcomes) == 1
    assert sum(isinstance(outcome, Stale) for outcome in outcomes) == 7


def test_deadlock_is_survived(cell: Database) -> None:
    first, second = make(cell, ids.new_uuid()), make(cell, ids.new_uuid())
    meet = threading.Barrier(2)
    met: set[int] = set()

    def both(tx: sa.Connection, one: str, other: str) -> None:
        instances.instance_update(tx, one, {"progress": 1})
        if threading.get_ident() not in met:
            met.add(threading.get_ident())
            meet.wait(30)
        instances.instance_update(tx, other, {"progress": 1})

    errors: list[BaseException] = []

    def work(one: str, other: str) -> None:
        try:
            cell.run(both, one, other)
        except BaseException as exc:
            errors.append(exc)

    threads = [threading.Thread(target=work, args=pair) for pair in ((first, second), (second, first))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert errors == []


def test_duplicates_are_typed(api: Database, cell: Database) -> None:
    host = ids.new_uuid()
    values = {"host": host, "binary": "nova-compute", "topic": "compute", "deleted": 0}
    cell.run(query.insert, SERVICES, values)
    with pytest.raises(DuplicateError):
        cell.run(query.insert, SERVICES, values)
    request = {"instance_uuid": host, "project_id": "p", "instance": "{}", "tags": "[]"}
    api.run(build_requests.build_request_create, request)
    with pytest.raises(DuplicateError):
        api.run(build_requests.build_request_create, request)


def test_flavors(api: Database) -> None:
    new = {"memory_mb": 64, "vcpus": 1, "root_gb": 1, "ephemeral_gb": 0, "is_public": False}
    created = api.run(flavors.flavor_create, {"flavorid": "f", "name": "n", **new}, {"k": "v"}, ["p"])
    assert created["extra_specs"] == {"k": "v"}
    assert api.query(flavors.flavor_get, "f", project_id="other") is None
    assert api.query(flavors.flavor_get, "f", project_id="p")["extra_specs"] == {"k": "v"}
    assert [f["name"] for f in api.query(flavors.flavor_list, is_public=True, project_id="p")] == ["n"]
    assert api.run(flavors.flavor_delete, "f")


def test_list_queries_use_indexes(cell: Database) -> None:
    """Each statement of a page on thousands of rows goes by an index."""
    project = ids.new_uuid()
    row = {"project_id": project, "user_id": "u", "vm_state": "active", "hidden": False, "host": "h"}
    many = [{**row, "uuid": ids.new_uuid(), "created_at": DAY + datetime.timedelta(seconds=n)} for n in range(4000)]
    children: dict[sa.Table, dict[str, Any]] = {
        t.INSTANCE_FAULTS: {"code": 500},
        t.INSTANCE_INFO_CACHES: {"network_info": "[]"},
        t.INSTANCE_EXTRA: {"flavor": "{}"},
        t.INSTANCE_METADATA: {"key": "k", "value": "v"},
        t.INSTANCE_SYSTEM_METADATA: {"key": "k", "value": "v"},
        t.BLOCK_DEVICE_MAPPING: {"source_type": "image"},
    }
    analyze = f"ANALYZE TABLE instances, tags, {', '.join(table.name for table in children)}"
    with cell.write() as tx:
        for other in range(4):
            rows = [{**one, "uuid": ids.new_uuid(), "project_id": f"{project}{other}"} for one in many]
            tx.execute(INSTANCES.insert(), rows)
        tx.execute(INSTANCES.insert(), many)
        for table, values in children.items():
            tx.execute(table.insert(), [{"instance_uuid": one["uuid"], **values} for one in many])
        tx.execute(TAGS.insert(), [{"resource_id": one["uuid"], "tag": "t"} for one in many])
    mysql = cell.dialect == "mysql"
    with cell.write() as tx:
        tx.exec_driver_sql(analyze if mysql else "ANALYZE")
    statements: list[tuple[str, Any]] = []
    sa.event.listen(cell.engine, "before_cursor_execute", lambda *a: statements.append((a[2], a[3])))
    parts = ("metadata", "system_metadata", "tags", "fault", "info_cache", "flavor", "block_device_mappings")
    page = cell.query(instances.instance_list, {"deleted": False, "project_id": project}, limit=50, parts=parts)
    assert len(page) == 50
    seen = [one for one in statements if one[0].startswith("SELECT")]
    assert len(seen) == 8
    with cell.read() as tx:
        plans = [tx.exec_driver_sql(f"EXPLAIN {text}", parameters).all() for text, parameters in seen]
    for plan in plans if mysql else plans[:1]:
        for step in plan:
            if mysql:
                assert not (step.type == "ALL" and not step.table.startswith("<")), (step, plan)
            else:
                assert "Seq Scan on instances" not in step[0], plan


def _own_connection(tx: sa.Connection) -> int:
    mysql = tx.dialect.name == "mysql"
    return int(tx.exec_driver_sql("SELECT CONNECTION_ID()" if mysql else "SELECT pg_backend_pid()").scalar_one())


def _kill(database: Database, connection: int) -> None:
    mysql = database.dialect == "mysql"
    with database.write() as tx:
        tx.exec_driver_sql(f"KILL {connection}" if mysql else f"SELECT pg_terminate_backend({connection})")
    time.sleep(0.3)


def test_killed_connections_are_survived(cell: Database) -> None:
    other = Database(cell.url.render_as_string(hide_password=False), db_retry_interval=0.05)
    uuid = make(other, ids.new_uuid())
    _kill(cell, other.query(_own_connection))
    found = other.query(instances.instance_get, uuid)
    assert found is not None
    _kill(cell, other.query(_own_connection))
    assert other.run(instances.instance_update, uuid, {"progress": 5}) == Updated()
    victims: list[int] = []

    def killed_once(tx: sa.Connection) -> None:
        instances.instance_update(tx, uuid, {"progress": 6})
        if not victims:
            victims.append(_own_connection(tx))
            _kill(cell, victims[0])
        instances.instance_update(tx, uuid, {"vcpus": 6})

    other.run(killed_once)
    found = other.query(instances.instance_get, uuid)
    assert found is not None
    assert (found["progress"], found["vcpus"]) == (6, 6)
    other.dispose()


def test_connections_come_back_without_a_transaction(cell: Database) -> None:
    one = Database(cell.url.render_as_string(hide_password=False), max_pool_size=1, max_overflow=0)
    uuid = make(one, ids.new_uuid())
    for progress in range(3):
        found = one.query(instances.instance_get, uuid)
        assert found is not None
        assert found["progress"] == (progress - 1 if progress else None)
        cell.run(instances.instance_update, uuid, {"progress": progress})

    def broken(tx: sa.Connection) -> None:
        instances.instance_update(tx, uuid, {"progress": 99})
        raise KeyError

    with pytest.raises(KeyError):
        one.run(broken)
    assert cell.run(instances.instance_update, uuid, {"progress": 7}) == Updated()
    assert one.query(instances.instance_get, uuid)["progress"] == 7  # type: ignore[index]
    one.dispose()


def test_object_is_not_saved_by_an_old_snapshot(cell: Database) -> None:
    ctxt = context.admin()
    uuid = make(cell, ids.new_uuid())
    other = Database(cell.url.render_as_string(hide_password=False))

    def save(tx: sa.Connection) -> None:
        found = store.load(tx, uuid)
        if not raced:
            raced.append(other.run(instances.instance_update, uuid, {"task_state": "deleting"}))
        found.task_state = "rebooting"
        store.save(tx, ctxt, found, expected_task_state=[None])

    raced: list[Any] = []
    with pytest.raises(exceptions.UnexpectedDeletingTaskStateError):
        cell.run(save)
    other.dispose()
    found = cell.query(instances.instance_get, uuid)
    assert found is not None
    assert found["task_state"] == "deleting"


def test_a_cell_without_tables_is_told_from_a_mistake_of_ours(cell: Database) -> None:
    with pytest.raises(DatabaseError) as missing, cell.read() as tx:
        tx.exec_driver_sql("SELECT * FROM no_such_table")
    assert lacks_tables(missing.value)
    with pytest.raises(DatabaseError) as mistake, cell.read() as tx:
        tx.exec_driver_sql("SELECT FROM FROM")
    assert not lacks_tables(mistake.value)
