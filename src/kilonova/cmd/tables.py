"""kilonova tables: our own tables beside Nova's, where they are and how to be rid of them.

In a cell they lie beside Nova's database, in the schema `kilonova` (PostgreSQL) or the database `<name>_kilonova`
(MySQL), with views in their place, so that Nova's tools pass them over. Where the account may not make that (and on
SQLite) they lie among Nova's tables, and Nova's `nova-manage db archive_deleted_rows` stops at them: use ours
meanwhile. Drop them when a cloud goes back to Nova for good.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from kilonova.cmd.on_cells import on_cells
from kilonova.flow.store import LIVE, State

if TYPE_CHECKING:
    from kilonova.db.cells import Cells
    from kilonova.db.engine import Database
    from kilonova.db.migrations.sync import Lineage


def main(argv: Sequence[str] | None = None) -> int:
    return on_cells("kilonova tables", _parser().parse_args(argv))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="kilonova tables", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--config-file", action="append", help="default: as for the services")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    show = commands.add_parser("show", help="the revisions of each database")
    show.set_defaults(run=_show)
    drop = commands.add_parser(
        "drop", help="remove our tables from every database; `nova-manage db sync` makes them anew"
    )
    drop.add_argument("--force", action="store_true", help="although operations are going on: nobody will finish them")
    drop.set_defaults(run=_drop)
    return parser


def _databases(cells: Cells) -> Iterator[tuple[str, Database, Lineage]]:
    from kilonova.db.migrations import sync

    yield "api", cells.api, sync.API
    for cell in cells.all():
        yield cell.name or cell.uuid, cell.database, sync.MAIN


def _show(cells: Cells, _arguments: argparse.Namespace) -> int:
    from kilonova.db.migrations import sync

    for name, database, lineage in _databases(cells):
        ours = sync.version(database, sync.OWN) or "none"
        place = ", among Nova's" if lineage is sync.MAIN and sync.own_among_novas(database) else ""
        print(f"{name}: Nova's tables {sync.version(database, lineage) or 'none'}, ours {ours}{place}")
    return 0


def _drop(cells: Cells, arguments: argparse.Namespace) -> int:
    from kilonova.db import flows
    from kilonova.db.migrations import sync

    present = [(name, db) for name, db, _ in _databases(cells) if sync.version(db, sync.OWN) is not None]
    open_ones = {name: len(db.query(flows.by_state, [*LIVE, State.STUCK])) for name, db in present}
    if any(open_ones.values()) and not arguments.force:
        for name, count in open_ones.items():
            if count:
                print(f"{name}: {count} operations are not finished (`kilonova flow list`)")
        print("nothing was dropped; stop the services and finish or abandon these, or use --force")
        return 1
    for name, database in present:
        sync.drop_own(database)
        print(f"{name}: dropped")
    return 0
