"""Databases are created whole, and older ones come to the same tables."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.operations import Operations
from alembic.runtime.migration import MigrationContext

from kilonova.base import retry
from kilonova.db.engine import Database, DatabaseError
from kilonova.db.migrations import sync


def shape(db: Database) -> dict[str, object]:
    inspector = sa.inspect(db.engine)
    return {
        table: (
            sorted((str(c["name"]), str(c["type"]), c["nullable"]) for c in inspector.get_columns(table)),
            sorted((str(i["name"]), tuple(i["column_names"]), bool(i["unique"])) for i in inspector.get_indexes(table)),
            sorted(str(u["column_names"]) for u in inspector.get_unique_constraints(table)),
        )
        for table in inspector.get_table_names()
    }


def back(db: Database, revision: str) -> None:
    """Undo what the revisions after this one did, as far as tables go."""
    with db.engine.execution_options(kilonova_write=True).begin() as connection:
        op = Operations(MigrationContext.configure(connection))
        for steps in _BACK.values():
            steps(op)
        connection.execute(sa.text("UPDATE alembic_version SET version_num = :r"), {"r": revision})


def _indexes(op: Operations) -> None:
    for side in ("dest", "src"):
        op.drop_index(f"migrations_by_{side}_host_nodes_and_status_idx", "migrations")


def _tls(op: Operations) -> None:
    with op.batch_alter_table("console_auth_tokens") as table:
        table.drop_column("tls_port")


def _shares(op: Operations) -> None:
    op.drop_table("share_mapping")


def _compute_ids(op: Operations) -> None:
    for name, column in (("instances", "compute_id"), ("migrations", "dest_compute_id")):
        op.drop_index(f"{name}_{column}_deleted_idx", name)
        for table in (name, f"shadow_{name}"):
            with op.batch_alter_table(table) as batch:
                batch.drop_column(column)


def _double_indexes(op: Operations) -> None:
    op.create_index("uuid", "instances", ["uuid"], unique=True)
    op.create_index("console_auth_tokens_token_hash_idx", "console_auth_tokens", ["token_hash"])
    op.create_table("migrate_version", sa.Column("version", sa.Integer()))


def _encryption(op: Operations) -> None:
    names = ("encrypted", "encryption_secret_uuid", "encryption_format", "encryption_options")
    for table in ("block_device_mapping", "shadow_block_device_mapping"):
        with op.batch_alter_table(table) as batch:
            for name in names:
                batch.drop_column(name)


def _shadow(op: Operations) -> None:
    op.create_index("shadow_instance_extra_idx", "shadow_instance_extra", ["instance_uuid"])
    op.create_index("shadow_migrations_uuid", "shadow_migrations", ["uuid"], unique=True)


_BACK = {
    "ab450ba04102": _indexes,
    "2903cd72dc14": _tls,
    "13863f4e1612": _shares,
    "1acf2c98e646": _compute_ids,
    "960aac0e09ea": _double_indexes,
    "ccb0fa1a2252": _encryption,
    "16f1fbcab42b": _shadow,
}


def test_cell_database_of_the_first_revision_comes_to_the_same_tables(cell_db: Database) -> None:
    new = shape(cell_db)
    with cell_db.write() as tx:
        tx.execute(sa.text("INSERT INTO instances (uuid, deleted, display_name) VALUES ('i', 0, 'kept')"))
        tx.execute(sa.text("INSERT INTO instance_metadata (instance_uuid, `key`, deleted) VALUES ('i', 'k', 0)"))
        tx.execute(sa.text("PRAGMA defer_foreign_keys = ON"))
    cell_db.dispose()
    old = Database(str(cell_db.url))
    sa.event.listen(old.engine, "connect", lambda raw, _: raw.execute("PRAGMA foreign_keys=OFF"))
    back(old, "8f2f1571d55b")
    old.dispose()
    assert shape(cell_db) != new
    assert sync.pending(cell_db, sync.MAIN)
    sync.sync_main(cell_db)
    assert shape(cell_db) == new
    assert sync.version(cell_db, sync.MAIN) == "ab450ba04102"
    assert not sync.pending(cell_db, sync.MAIN)
    with cell_db.read() as tx:
        assert tx.execute(sa.text("SELECT display_name FROM instances")).scalars().all() == ["kept"]
        assert tx.execute(sa.text("SELECT instance_uuid FROM instance_metadata")).scalars().all() == ["i"]


def test_api_database_of_the_first_revision_comes_to_the_same_tables(api_db: Database) -> None:
    new = shape(api_db)
    with api_db.engine.execution_options(kilonova_write=True).begin() as connection:
        op = Operations(MigrationContext.configure(connection))
        with op.batch_alter_table("build_requests") as table:
            for name in ("request_spec_id", "display_name", "instance_metadata", "progress", "vm_state", "task_state"):
                table.add_column(sa.Column(name, sa.Integer()))
            for name in ("image_ref", "access_ip_v4", "access_ip_v6", "info_cache", "security_groups", "config_drive"):
                table.add_column(sa.Column(name, sa.Text()))
            for name in ("key_name", "locked_by", "user_id"):
                table.add_column(sa.Column(name, sa.String(36)))
        op.create_table("migrate_version", sa.Column("version", sa.Integer()))
        connection.execute(sa.text("UPDATE alembic_version SET version_num = 'd67eeaabee36'"))
    sync.sync_api(api_db)
    assert shape(api_db) == new
    assert sync.version(api_db, sync.API) == "cdeec0c85668"


def test_database_stamped_by_nova_gets_our_tables_beside_it(cell_db: Database) -> None:
    with cell_db.write() as tx:
        for table in sync.OWN.tables:
            tx.execute(sa.text(f"DROP TABLE {table}"))
    assert sync.pending(cell_db, sync.MAIN)
    sync.sync_main(cell_db)
    assert not sync.pending(cell_db, sync.MAIN)
    assert "kn_flow" in shape(cell_db)


def test_own_tables_of_the_first_revision_come_to_the_same_tables(cell_db: Database) -> None:
    whole = shape(cell_db)
    with cell_db.write() as tx:
        for table in ("kn_turn", "kn_group_host", "kn_loop"):
            tx.execute(sa.text(f"DROP TABLE {table}"))
        tx.execute(sa.text("UPDATE kn_alembic_version SET version_num = '7c1f0b6a2d01'"))
    assert sync.pending(cell_db, sync.MAIN)
    sync.sync_main(cell_db)
    assert not sync.pending(cell_db, sync.MAIN)
    assert shape(cell_db) == whole


def test_second_run_changes_nothing(cell_db: Database) -> None:
    before = shape(cell_db)
    sync.sync_main(cell_db)
    assert shape(cell_db) == before


def test_creation_that_was_cut_off_goes_on(cell_db: Database) -> None:
    before = shape(cell_db)
    with cell_db.write() as tx:
        tx.execute(sa.text("DELETE FROM alembic_version"))
        tx.execute(sa.text("DROP TABLE tags"))
    sync.sync_main(cell_db)
    assert shape(cell_db) == before


def test_database_of_before_alembic_is_refused(tmp_path: Path) -> None:
    db = Database(f"sqlite:///{tmp_path}/old.db")
    with db.write() as tx:
        tx.execute(sa.text("CREATE TABLE instances (id INTEGER)"))
    with pytest.raises(sync.MigrationError, match="upgrade it with Nova first"):
        sync.sync_main(db)


@pytest.mark.parametrize("version", ["402", "8f2f1571d55b"])
def test_new_database_is_made_at_the_newest_revision_only(tmp_path: Path, version: str) -> None:
    db = Database(f"sqlite:///{tmp_path}/new.db")
    with pytest.raises(sync.MigrationError):
        sync.sync_main(db, version)
    assert shape(db) == {}


def test_revision_of_a_newer_nova_is_refused(cell_db: Database) -> None:
    with cell_db.write() as tx:
        tx.execute(sa.text("UPDATE alembic_version SET version_num = 'ffffffffffff'"))
    with pytest.raises(sync.MigrationError):
        sync.sync_main(cell_db)


def test_empty_database_has_no_version(tmp_path: Path) -> None:
    assert sync.version(Database(f"sqlite:///{tmp_path}/new.db"), sync.MAIN) is None


def test_creation_is_quick(tmp_path: Path) -> None:
    began = time.process_time()
    sync.sync_api(Database(f"sqlite:///{tmp_path}/api.db"))
    sync.sync_main(Database(f"sqlite:///{tmp_path}/cell.db"))
    assert time.process_time() - began < 3


@pytest.mark.parametrize(("code", "attempts"), [(1050, 3), (1061, 3), (1045, 1)])
def test_who_loses_a_race_tries_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, attempts: int
) -> None:
    made = []

    def attempt(*_: object) -> None:
        made.append(1)
        if len(made) < 3:
            raise sa.exc.OperationalError("CREATE TABLE x", None, Exception(code, "said the server"))

    monkeypatch.setattr(sync, "_attempt", attempt)
    monkeypatch.setattr(sync, "_WAITS", retry.Backoff(attempts=3, base=0.0))
    database = Database(f"sqlite:///{tmp_path}/x.db")
    if attempts == 1:
        with pytest.raises(DatabaseError):
            sync.sync_main(database)
    else:
        sync.sync_main(database)
    assert len(made) == attempts


@pytest.mark.parametrize("lineage", [sync.API, sync.MAIN])
def test_revisions_that_were_cut_off_are_repeated(tmp_path: Path, lineage: sync.Lineage) -> None:
    """Where a database commits each change of a table by itself, all may be done but the note of it."""
    database = Database(f"sqlite:///{tmp_path}/x.db")
    run = sync.sync_api if lineage is sync.API else sync.sync_main
    run(database)
    whole = shape(database)
    with database.write() as tx:
        tx.exec_driver_sql("UPDATE alembic_version SET version_num = ?", (lineage.revisions()[0],))
    run(database)
    assert sync.version(database, lineage) == lineage.head
    assert shape(database) == whole
