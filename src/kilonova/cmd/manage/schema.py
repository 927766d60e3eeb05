"""`nova-manage api_db sync|version`, `db sync|version`: the databases' tables."""

from __future__ import annotations

from kilonova.cmd.command import one_line
from kilonova.cmd.manage.actions import Action, argument, switch
from kilonova.cmd.manage.session import Session
from kilonova.db.cells import CELL0_UUID, NoApiDatabaseError, UnknownCellError
from kilonova.db.engine import DatabaseError
from kilonova.db.migrations import sync

_CELL0_FAILED = """ERROR: the database of cell0 cannot be brought up to date: {}
To be looked at, in this order:
  - [api_database] connection is set, and the database it names exists
  - `nova-manage api_db sync` has been run
  - `nova-manage cell_v2 map_cell0` has been run
  - the database that cell0 is mapped to exists (`nova-manage cell_v2 list_cells --verbose`)"""


def sync_api(session: Session, version: str | None) -> int:
    try:
        sync.sync_api(session.cells.api, version)
    except (sync.MigrationError, NoApiDatabaseError) as exc:
        session.say(f"ERROR: {exc}")
        return 1
    return 0


def sync_main(session: Session, version: str | None, local_cell: bool) -> int:
    if not local_cell and not _sync_cell0(session, version):
        return 1
    try:
        sync.sync_main(session.cells.own, version)
    except (sync.MigrationError, NoApiDatabaseError) as exc:
        session.say(f"ERROR: {exc}")
        return 1
    return 0


def version_api(session: Session) -> int:
    session.say(sync.version(session.cells.api, sync.API))
    return 0


def version_main(session: Session) -> int:
    session.say(sync.version(session.cells.own, sync.MAIN))
    return 0


def _sync_cell0(session: Session, version: str | None) -> bool:
    try:
        sync.sync_main(session.cells.cell(CELL0_UUID).database, version)
    except UnknownCellError:
        session.say("WARNING: cell0 is not mapped; its database is left alone.")
    except (sync.MigrationError, NoApiDatabaseError, DatabaseError) as exc:
        session.say(_CELL0_FAILED.format(one_line(exc)))
        return False
    return True


_VERSION = argument("version", nargs="?", help="The revision to go to. Default: the newest.")
_SYNC_CODES = {0: "the tables are at the revision", 1: "they are not; the message says why"}

ACTIONS = (
    Action("api_db", "sync", "Create or migrate the tables of the API database.", sync_api, (_VERSION,)),
    Action("api_db", "version", "Show the revision of the API database.", version_api),
    Action(
        "db",
        "sync",
        "Create or migrate the tables of the cell database of [database] connection, and of cell0.",
        sync_main,
        (switch("--local_cell", help="Leave cell0 alone."), _VERSION),
        _SYNC_CODES,
    ),
    Action("db", "version", "Show the revision of the cell database.", version_main),
)
