"""kilonova flow: what the conductor is doing with a server, step by step; and what an operator may do about it."""

from __future__ import annotations

import argparse
import datetime
import getpass
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from kilonova.cmd.on_cells import on_cells
from kilonova.flow.store import LIVE, FlowEvent, FlowRow, State

if TYPE_CHECKING:
    from kilonova.db.cells import Cells
    from kilonova.db.engine import Database


def main(argv: Sequence[str] | None = None) -> int:
    return on_cells("kilonova flow", _parser().parse_args(argv))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="kilonova flow", description=__doc__)
    parser.add_argument("--config-file", action="append", help="default: as for the services")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    show = commands.add_parser("show", help="all flows of a server with their steps")
    show.add_argument("server", help="uuid")
    show.set_defaults(run=_show)
    listing = commands.add_parser("list", help="flows that have not ended")
    listing.add_argument("--stuck", action="store_true", help="only those whose undo failed for good")
    listing.set_defaults(run=_list)
    abandon = commands.add_parser("abandon", help="end a flow without finishing or undoing it")
    abandon.add_argument("flow", help="id")
    abandon.add_argument("--why", required=True, help="kept with the flow")
    abandon.set_defaults(run=_abandon)
    revive = commands.add_parser("revive", help="let a stuck flow go on where it stood")
    revive.add_argument("flow", help="id")
    revive.set_defaults(run=_revive)
    return parser


def _databases(cells: Cells) -> Iterator[tuple[str, Database]]:
    if not cells.has_api:
        yield "own", cells.own
        return
    yield "api", cells.api
    for cell in cells.all():
        yield cell.name or cell.uuid, cell.database


def _show(cells: Cells, arguments: argparse.Namespace) -> int:
    from kilonova.db import flows

    found = False
    for name, database in _databases(cells):
        for row in database.query(flows.history, arguments.server):
            found = True
            print(_headline(row, name))
            for event in database.query(flows.events, row.id):
                print(_line(event, row.created_at))
    if not found:
        print(f"no flow of {arguments.server} is kept", file=sys.stderr)
    return 0 if found else 1


def _list(cells: Cells, arguments: argparse.Namespace) -> int:
    from kilonova.db import flows

    wanted = [State.STUCK] if arguments.stuck else [*LIVE, State.STUCK]
    for name, database in _databases(cells):
        for row in database.query(flows.by_state, wanted):
            print(_headline(row, name))
    return 0


def _abandon(cells: Cells, arguments: argparse.Namespace) -> int:
    from kilonova.db import flows

    who = getpass.getuser()
    done = any(
        database.run(flows.abandon, arguments.flow, who=who, why=arguments.why) for _, database in _databases(cells)
    )
    return _told(done, f"no unfinished flow {arguments.flow}")


def _revive(cells: Cells, arguments: argparse.Namespace) -> int:
    from kilonova.db import flows

    done = any(database.run(flows.revive, arguments.flow) for _, database in _databases(cells))
    return _told(done, f"no stuck flow {arguments.flow}")


def _told(done: bool, otherwise: str) -> int:
    if not done:
        print(otherwise, file=sys.stderr)
    return 0 if done else 1


def _headline(row: FlowRow, database: str) -> str:
    parts = [f"{row.op} {row.subject_id}  {row.state}"]
    if row.position is not None:
        parts.append(f"at {row.position}" + (f", failed tries {row.tries}" if row.tries else ""))
    if row.code_version > 1:
        parts.append(f"for conductors that know version {row.code_version} of it")
    if row.lease_owner is not None:
        parts.append(f"held by {row.lease_owner} until {_time(row.lease_until)}")
    if row.reason:
        parts.append(f"because: {row.reason}")
    return (
        f"{'  '.join(parts)}\n    flow {row.id} in {database}, request {row.request_id}, since {_time(row.created_at)}"
    )


def _line(event: FlowEvent, since: int) -> str:
    took = "" if event.duration_ms is None else f"  {event.duration_ms} ms"
    tries = f"  try {event.tries + 1}" if event.tries else ""
    detail = f"  {event.detail}" if event.detail else ""
    return f"    +{(event.at - since) / 1000:8.3f} s  {event.step or '':<12} {event.kind}{took}{tries}{detail}"


def _time(milliseconds: int) -> str:
    return datetime.datetime.fromtimestamp(milliseconds / 1000, datetime.UTC).isoformat(timespec="seconds")
