"""`nova-manage db archive_deleted_rows|purge`: deleted rows into shadow tables, and out of them."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import datetime
import signal
import threading
from collections.abc import Callable, Iterator

from kilonova.cmd.command import one_line
from kilonova.cmd.manage import times
from kilonova.cmd.manage.actions import UNFORESEEN, Action, Refused, argument, switch
from kilonova.cmd.manage.session import Session
from kilonova.db.api import instance_groups, instance_mappings, request_specs
from kilonova.db.cell import archive
from kilonova.db.cells import CellDown, NoApiDatabaseError
from kilonova.db.engine import Database, DatabaseError, Tx

MAX_ROWS = 2**31 - 1

NO_API_DATABASE = 3

_NO_API_DATABASE = "The API database, which has the mappings of deleted servers, does not answer:"


@dataclasses.dataclass(frozen=True)
class Wish:
    """What is to be archived, and how: `sleep` seconds between batches; no further one once `stop` is set."""

    before: datetime.datetime | None
    task_log: bool
    until_complete: bool
    sleep: int
    stop: threading.Event


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
        raise Refused(2, f"--max_rows must be between 0 and {MAX_ROWS}.")
    try:
        session.cells.all()
    except (NoApiDatabaseError, DatabaseError) as exc:
        raise Refused(NO_API_DATABASE, f"{_NO_API_DATABASE} {one_line(exc)}") from exc
    when = _time(before, wrong=4)
    counts: dict[str, int] = collections.Counter()
    with _interruptible(session) as stop:
        wish = Wish(when, task_log, until_complete, sleep, stop)

        def work(prefix: str, database: Database) -> None:
            left = max_rows if until_complete else max_rows - sum(counts.values())
            if left > 0 and not stop.is_set():
                _archive(session, prefix, database, counts, left, wish)

        fine = _in_databases(session, work, all_cells=all_cells)
    if verbose:
        _show(session, counts)
    if counts and purge and not stop.is_set():
        fine &= _purge(session, None, all_cells=all_cells, verbose=verbose)[1]
    return int(bool(counts)) if fine else UNFORESEEN


def purge(session: Session, before: str | None, purge_all: bool, verbose: bool, all_cells: bool) -> int:
    if before is None and not purge_all:
        raise Refused(1, "Give --before or --all.")
    when = _time(before, wrong=2)
    if all_cells:
        try:
            session.cells.all()
        except (NoApiDatabaseError, DatabaseError) as exc:
            text = f"The API database, where the cells are named, does not answer: {one_line(exc)}"
            raise Refused(4, text) from exc
    purged, fine = _purge(session, when, all_cells=all_cells, verbose=verbose)
    if not fine:
        return UNFORESEEN
    return 0 if purged else 3


@contextlib.contextmanager
def _interruptible(session: Session) -> Iterator[threading.Event]:
    """^C sets the event, so that the batch ends and is counted; it takes effect at once only when it comes again."""
    stop = threading.Event()

    def asked(_signal: int, _frame: object) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()
        session.complain("Stopping after this batch; ^C again stops now.")

    before = signal.getsignal(signal.SIGINT)
    # In the background ^C is not for us.
    if before is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, asked)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, before)


def _in_databases(session: Session, work: Callable[[str, Database], None], *, all_cells: bool) -> bool:
    """`work(prefix of the tables' names, database)`, in every cell or here; False when a cell does not answer."""
    if not all_cells:
        work("", session.cells.own)
        return True
    fine = True
    for cell in session.cells.all():
        answer = session.cells.ask(lambda cell: work(f"{cell.name or cell.uuid}.", cell.database), cell)
        if isinstance(answer, CellDown):
            session.complain(f"Cell {cell.name or ''} {cell.uuid} does not answer: {answer.reason.splitlines()[0]}")
            fine = False
    return fine


def _archive(
    session: Session, prefix: str, database: Database, counts: dict[str, int], max_rows: int, wish: Wish
) -> None:
    def forget(uuids: list[str]) -> None:
        for table, count in _forgotten(session, database, uuids).items():
            counts[f"API_DB.{table}"] += count

    while True:
        done = archive.archive(database, max_rows, wish.before, forget=forget, task_log=wish.task_log)
        for table, count in done.rows.items():
            counts[prefix + table] += count
        if not wish.until_complete or not done.total or wish.stop.wait(wish.sleep):
            return


def _forgotten(session: Session, database: Database, uuids: list[str]) -> dict[str, int]:
    """Remove what the API database knows of deleted servers of a cell; raises Refused when it is lost."""
    try:
        return session.cells.api.run(_forget, uuids, _other_cells(session, database))
    except DatabaseError as exc:
        raise Refused(NO_API_DATABASE, f"{_NO_API_DATABASE} {one_line(exc)}") from exc


def _other_cells(session: Session, database: Database) -> set[str]:
    """None, where no cell is known to be the one of this database."""
    cells = session.cells.all()
    others = {cell.uuid for cell in cells if cell.database is not database}
    return others if len(others) < len(cells) else set()


def _forget(tx: Tx, uuids: list[str], other_cells: set[str]) -> dict[str, int]:
    """A server that is in another cell is not the one whose record was deleted here."""
    mapped = instance_mappings.instance_mapping_list(tx, uuids)
    elsewhere = {each["instance_uuid"] for each in mapped if each["cell_uuid"] in other_cells}
    uuids = [uuid for uuid in uuids if uuid not in elsewhere]
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


def _purge(session: Session, when: datetime.datetime | None, *, all_cells: bool, verbose: bool) -> tuple[int, bool]:
    """How many rows went, and whether every cell answered."""
    total = 0

    def work(prefix: str, database: Database) -> None:
        nonlocal total
        for table, count in archive.purge(database, when).items():
            total += count
            if verbose:
                session.say(f"{prefix}{table}: {count} rows purged")

    fine = _in_databases(session, work, all_cells=all_cells)
    return total, fine


def _time(text: str | None, *, wrong: int) -> datetime.datetime | None:
    """Raises Refused with the code `wrong`."""
    try:
        return None if text is None else times.utc(text)
    except times.NoTimeError as exc:
        raise Refused(wrong, f"--before: {exc}") from exc


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
            255: "a cell does not answer, or something unforeseen happened",
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
