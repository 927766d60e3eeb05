"""Databases to the newest revision: an empty one is created whole and stamped, an older one is migrated step by step.

Nova's tables carry Nova's revisions in `alembic_version`, our own beside them (room.py) ours in `kn_alembic_version`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import logging
from collections.abc import Iterator
from pathlib import Path

import sqlalchemy as sa
from alembic import command, config, util
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

from kilonova.base import retry
from kilonova.db.engine import Database, DatabaseError
from kilonova.db.migrations import room

LOG = logging.getLogger(__name__)

_ANOTHER_IS_AT_IT = frozenset(
    {1050, 1051, 1060, 1061, 1062, 1091, 1146, 1205, 1213, 1684}
    | {"23505", "40001", "40P01", "42701", "42704", "42710", "42P01", "42P07"}
)
"""What servers say when another process makes, changes or drops the same at the same time, or has just done so."""

_TURN = "SELECT pg_advisory_xact_lock(7741528618346275169)"
"""On PostgreSQL one sync of a database waits for the other. A sync reads the tables by several statements, and one that
ends between two of them would be seen by half. The number is arbitrary; nothing else takes this lock."""

_WAITS = retry.Backoff(attempts=8, base=1.0, cap=10.0)
"""Long enough for one of several to come to the end while the others wait."""


class MigrationError(Exception):
    """The database cannot be brought to the revision; the message says why."""


@dataclasses.dataclass(frozen=True)
class Lineage:
    """One line of revisions: its scripts, its version table and all its tables (the module's METADATA)."""

    name: str
    version_table: str
    catalogue: str

    @property
    def metadata(self) -> sa.MetaData:
        metadata: sa.MetaData = importlib.import_module(self.catalogue).METADATA
        return metadata

    def config(self, connection: sa.Connection | None = None) -> config.Config:
        settings = config.Config(attributes={"connection": connection, "version_table": self.version_table})
        settings.set_main_option("script_location", str(Path(__file__).parent / self.name))
        settings.set_main_option("path_separator", "os")
        return settings

    @property
    def head(self) -> str:
        head = ScriptDirectory.from_config(self.config()).get_current_head()
        assert head is not None
        return head

    def revisions(self) -> list[str]:
        """Every revision, oldest first."""
        return [s.revision for s in ScriptDirectory.from_config(self.config()).walk_revisions()][::-1]

    @property
    def tables(self) -> list[str]:
        """The names of its tables, that of the revision among them."""
        return [*self.metadata.tables, self.version_table]


API = Lineage("api", "alembic_version", "kilonova.db.api.tables.whole")
MAIN = Lineage("main", "alembic_version", "kilonova.db.cell.tables.whole")
OWN = Lineage("own", "kn_alembic_version", "kilonova.db.own_tables")


def sync_api(database: Database, version: str | None = None) -> None:
    """The API database at `version` (default: the newest)."""
    _sync(database, API, version)


def sync_main(database: Database, version: str | None = None) -> None:
    """A cell's database at `version` (default: the newest)."""
    _sync(database, MAIN, version)


def version(database: Database, lineage: Lineage) -> str | None:
    """The revision the database is at; None if it has no tables of ours."""
    with database.engine.connect() as connection:
        return _current(connection, lineage)


def pending(database: Database, lineage: Lineage) -> bool:
    """Whether the database is not at the newest revision, its own tables included."""
    with database.engine.connect() as connection:
        return any(_current(connection, line) != line.head for line in (lineage, OWN))


def own_among_novas(database: Database) -> bool:
    """Whether our own tables are where Nova's tools see them."""
    with database.engine.connect() as connection:
        return OWN.version_table in sa.inspect(connection).get_table_names()


def drop_own(database: Database) -> None:
    """Remove our own tables; Nova's stay as they are."""
    with _connection(database) as connection:
        room.drop(connection, OWN.tables)


def _sync(database: Database, lineage: Lineage, target: str | None) -> None:
    if target is not None and target.isdigit():
        raise MigrationError(f"{target} is a revision of the time before Alembic; give one of {lineage.revisions()}")
    retry.call(
        lambda: _attempt(database, lineage, target or None),
        on=_lost_a_race,
        backoff=_WAITS,
        before_retry=lambda exc, _attempt: LOG.info("another process is at the same tables, waiting: %s", exc.orig),  # type: ignore[attr-defined]
    )


def _lost_a_race(exc: BaseException) -> bool:
    """Whether another sync may have caused the error. A Galera cluster has no lock that keeps two apart, and Nova's own
    sync takes none.
    """
    original = getattr(exc, "orig", None)
    if not isinstance(exc, DatabaseError) or original is None:
        return False
    code = getattr(original, "pgcode", None) or next(iter(original.args), None)
    return code in _ANOTHER_IS_AT_IT


def _attempt(database: Database, lineage: Lineage, target: str | None) -> None:
    """Whatever is there already is left as it is, so that this may be repeated."""
    with _connection(database) as connection:
        if lineage is MAIN:
            _find_own(connection)
        for line, wanted in ((lineage, target), (OWN, None)):
            if _is_new(connection, line):
                _create(connection, line, wanted)
            else:
                _upgrade(connection, line, wanted or "head")
        if lineage is MAIN:
            room.settle(connection, OWN.tables)


def _find_own(connection: sa.Connection) -> None:
    """Our tables in their room, if a sync was cut off; in a new database they are what an older one has left there."""
    if _is_new(connection, MAIN):
        room.drop(connection, OWN.tables)
    else:
        room.rejoin(connection, OWN.tables)


@contextlib.contextmanager
def _connection(database: Database) -> Iterator[sa.Connection]:
    """A connection in a write transaction; on SQLite without foreign keys, since tables are rebuilt."""
    with database.engine.execution_options(kilonova_write=True).connect() as connection:
        sqlite = connection.dialect.name == "sqlite"
        raw = connection.connection.driver_connection
        if sqlite:
            assert raw is not None
            raw.execute("PRAGMA foreign_keys=OFF")
        try:
            with connection.begin():
                if connection.dialect.name == "postgresql":
                    connection.exec_driver_sql(_TURN)
                yield connection
        finally:
            if sqlite and raw is not None:
                raw.execute("PRAGMA foreign_keys=ON")


def _current(connection: sa.Connection, lineage: Lineage) -> str | None:
    context = MigrationContext.configure(connection, opts={"version_table": lineage.version_table})
    return context.get_current_revision()


def _is_new(connection: sa.Connection, lineage: Lineage) -> bool:
    """Whether there is nothing yet, or a creation that was cut off (where a database commits each CREATE by itself)."""
    tables = room.names(connection)
    if lineage.version_table in tables:
        return _current(connection, lineage) is None
    foreign = tables & set(lineage.metadata.tables)
    if foreign:
        raise MigrationError(
            f"the database has tables ({', '.join(sorted(foreign)[:3])} ...) but no {lineage.version_table}: "
            "it is older than Alembic's revisions; upgrade it with Nova first"
        )
    return True


def _create(connection: sa.Connection, lineage: Lineage, target: str | None) -> None:
    if target not in (None, "head", "heads", lineage.head):
        raise MigrationError(f"a new database is created at the newest revision, {lineage.head}, not at {target}")
    LOG.info("creating the tables of %s at revision %s", lineage.name, lineage.head)
    context = MigrationContext.configure(connection, opts={"version_table": lineage.version_table})
    context._ensure_version_table()
    lineage.metadata.create_all(connection)
    command.stamp(lineage.config(connection), "head")


def _upgrade(connection: sa.Connection, lineage: Lineage, target: str) -> None:
    try:
        command.upgrade(lineage.config(connection), target)
    except util.CommandError as exc:
        raise MigrationError(f"cannot bring the database to revision {target}: {exc}") from exc
