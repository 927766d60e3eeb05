"""`nova-manage db archive_deleted_rows|purge`: deleted rows into shadow tables, and out of them."""

from __future__ import annotations

import collections
import dataclasses
import datetime
import time
from collections.abc import Iterator

from kilonova.cmd.manage.actions import Action, argument, switch
from kilonova.cmd.manage.session import Session
from kilonova.db.api import instance_groups, instance_mappings, request_specs
from kilonova.db.cell import archive
from kilonova.db.cells import NoApiDatabaseError
from kilonova.db.engine import Database, DatabaseError, Tx

MAX_ROWS = 2**31 - 1

FORMATS = (
    "%Y-%m-%d",
    "%Y-%m-%d %H:%M",
    "%Y-%m-%d %H:%M:%S",
    "%Y-%m-%dT%H:%M:%S",
    "%Y-%m-%dT%H:%M:%SZ",
    "%a %b %d %H:%M:%S %Z %Y",
    "%a %b %d %H:%M:%S %Y",
    "%a %d %b %Y %H:%M:%S %p %Z",
    "%Y%m%d",
    *(
        f"{day}{clock}"
        for day in ("%B %d %Y", "%b %d %Y", "%B %d, %Y", "%b %d, %Y", "%d %B %Y", "%d %b %Y", "%d-%b-%Y")
        for clock in ("", " %H:%M", " %H:%M:%S")
    ),
)
"""Times as people and the command `date` write them; UTC."""


class NoTimeError(Exception):
    """The text is no time."""


@dataclasses.dataclass(frozen=True)
class Wish:
    """What is to be archived, and how: `sleep` seconds between batches."""

    before: datetime.datetime | None
    task_log: bool
    until_complete: bool
    sleep: int


def archive_deleted_rows(
    session: Session,
    max_rows: int,
    before: str | None,
    verbose: bool,
    until_complete: bool,
    purge: bool,
    all_cells: bool,
    task_log: bool,
    sleep: int,
) -> int:
    if not 0 <= max_rows <= MAX_ROWS:
        session.say(f"--max_rows must be between 0 and {MAX_ROWS}.")
        return 2
    try:
        session.cells.all()
    except (NoApiDatabaseError, DatabaseError) as exc:
        session.say(f"The API database does not answer, and mappings of archived servers are there: {exc}")
        return 3
    try:
        wish = Wish(_time(before), task_log, until_complete, sleep)
    except NoTimeError as exc:
        session.say(f"--before: {exc}")
        return 4
    databases = list(_databases(session, all_cells=all_cells))
    counts: dict[str, int] = collections.Counter()
    for prefix, database in databases:
        left = max_rows if until_complete else max_rows - sum(counts.values())
        if left > 0:
            _archive(session, prefix, database, counts, left, wish)
    if verbose:
        _show(session, counts)
    if counts and purge:
        _purge(session, databases, None, verbose=verbose)
    return int(bool(counts))


def purge(session: Session, before: str | None, purge_all: bool, verbose: bool, all_cells: bool) -> int:
    if before is None and not purge_all:
        session.say("Give --before or --all.")
        return 1
    try:
        when = _time(before)
    except NoTimeError as exc:
        session.say(f"--before: {exc}")
        return 2
    try:
        databases = list(_databases(session, all_cells=all_cells))
    except (NoApiDatabaseError, DatabaseError) as exc:
        session.say(f"The API database, where the cells are named, does not answer: {exc}")
        return 4
    return 0 if _purge(session, databases, when, verbose=verbose) else 3


def _databases(session: Session, *, all_cells: bool) -> Iterator[tuple[str, Database]]:
    """The databases to work on, with what their tables' names are prefixed by."""
    if not all_cells:
        yield "", session.cells.own
        return
    for cell in session.cells.all():
        yield f"{cell.name or cell.uuid}.", cell.database


def _archive(
    session: Session, prefix: str, database: Database, counts: dict[str, int], max_rows: int, wish: Wish
) -> None:
    while True:
        done = archive.archive(database, max_rows, wish.before, task_log=wish.task_log)
        for table, count in done.rows.items():
            counts[prefix + table] += count
        if done.instance_uuids:
            for table, count in session.cells.api.run(_forget, done.instance_uuids).items():
                counts[f"API_DB.{table}"] += count
        if not wish.until_complete or not done.total:
            return
        time.sleep(wish.sleep)


def _forget(tx: Tx, uuids: list[str]) -> dict[str, int]:
    """Remove what the API database knows of archived servers."""
    return {
        "instance_mappings": instance_mappings.instance_mapping_delete_many(tx, uuids),
        "request_specs": request_specs.request_spec_delete_many(tx, uuids),
        "instance_group_member": instance_groups.instance_group_members_remove(tx, uuids),
    }


def _show(session: Session, counts: dict[str, int]) -> None:
    if not counts:
        session.say("Nothing was archived.")
        return
    session.table(("Table", "Number of Rows Archived"), sorted(counts.items()))


def _purge(
    session: Session, databases: list[tuple[str, Database]], when: datetime.datetime | None, *, verbose: bool
) -> int:
    total = 0
    for prefix, database in databases:
        for table, count in archive.purge(database, when).items():
            total += count
            if verbose:
                session.say(f"{prefix}{table}: {count} rows purged")
    return total


def _time(text: str | None) -> datetime.datetime | None:
    if text is None:
        return None
    for form in FORMATS:
        try:
            return datetime.datetime.strptime(text.strip(), form)
        except ValueError:
            continue
    raise NoTimeError(f"{text!r} is no time; write for example 2026-01-31 or '2026-01-31 12:00:00'")


_ALL_CELLS = switch("--all-cells", help="In every cell, not only in the database of this configuration.")
_VERBOSE = switch("--verbose", help="Show how many rows of each table.")

ACTIONS = (
    Action(
        "db",
        "archive_deleted_rows",
        "Move deleted rows to the shadow tables, and forget the mappings of deleted servers.",
        archive_deleted_rows,
        (
            argument(
                "--max_rows", metavar="<number>", type=int, default=1000, help="About so many rows. Default: 1000."
            ),
            argument("--before", metavar="<date>", help="Only what was deleted before this time."),
            _VERBOSE,
            switch("--until-complete", help="Go on until there is nothing left."),
            switch("--purge", help="Empty the shadow tables afterwards."),
            _ALL_CELLS,
            switch("--task-log", help="Also move the log of usage audits."),
            argument("--sleep", metavar="<seconds>", type=int, default=0, help="Rest between batches."),
        ),
        {
            0: "there was nothing to archive",
            1: "rows were archived; there may be more",
            2: "--max_rows is out of bounds",
            3: "the API database does not answer",
            4: "--before is no time",
            255: "something unforeseen happened",
        },
    ),
    Action(
        "db",
        "purge",
        "Delete the rows of the shadow tables.",
        purge,
        (
            argument("--before", metavar="<before>", help="Only what was deleted before this time."),
            switch("--all", dest="purge_all", help="Everything."),
            _VERBOSE,
            _ALL_CELLS,
        ),
        {
            0: "rows were purged",
            1: "neither --before nor --all",
            2: "--before is no time",
            3: "there was nothing to purge",
            4: "the API database does not answer",
        },
    ),
)
