"""`nova-manage db online_data_migrations`: filling in what older releases left empty."""

from __future__ import annotations

import logging

from kilonova.cmd.command import one_line
from kilonova.cmd.manage.actions import Action, argument, positive
from kilonova.cmd.manage.session import Session
from kilonova.db import online

LOG = logging.getLogger(__name__)


def online_data_migrations(session: Session, max_count: str | None) -> int:
    limit = None if max_count is None else positive(max_count, wrong=127)
    rows, done, failed = [], 0, False
    for name, migrate in online.MIGRATIONS.items():
        run = online.Run(session.cells, session.conf, None if limit is None else limit - done)
        failed |= not _run(session, name, migrate, run)
        rows.append((name, run.found, run.done))
        done += run.done
    session.table(("Migration", "Total Needed", "Completed"), sorted(rows))
    if failed and (max_count is None or not done):
        session.say("Some migrations failed; the log says why.")
        return 2
    return 0 if max_count is None else int(bool(done))


def _run(session: Session, name: str, migrate: online.Migration, run: online.Run) -> bool:
    """Whether all of it could be done."""
    try:
        migrate(run)
    except Exception as exc:
        LOG.exception("migration %s failed", name)
        run.troubles.append(one_line(exc))
    if run.troubles:
        session.say(f"Migration {name} failed.")
    for trouble in run.troubles:
        session.complain(f"{name}: {trouble}")
    return not run.troubles


ACTIONS = (
    Action(
        "db",
        "online_data_migrations",
        "Fill in what older releases left empty; services may run meanwhile.",
        online_data_migrations,
        (argument("--max-count", metavar="<number>", help="Stop after so many rows. Default: go on to the end."),),
        {
            0: "there is nothing left to do",
            1: "rows were filled in; run it again",
            2: "a migration failed",
            127: "--max-count is no number",
        },
    ),
)
