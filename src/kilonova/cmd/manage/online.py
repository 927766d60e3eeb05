"""`nova-manage db online_data_migrations`: filling in what older releases left empty."""

from __future__ import annotations

import logging

from kilonova.cmd.manage.actions import Action, argument, positive
from kilonova.cmd.manage.session import Session
from kilonova.db import online

LOG = logging.getLogger(__name__)
BATCH = 50


def online_data_migrations(session: Session, max_count: str | None) -> int:
    count = BATCH if max_count is None else positive(max_count, wrong=127)
    totals = {name: [0, 0] for name in online.MIGRATIONS}
    while True:
        done, failed = _round(session, count, totals)
        if max_count is not None or not done:
            break
    rows = [(name, found, filled) for name, (found, filled) in sorted(totals.items())]
    session.table(("Migration", "Total Needed", "Completed"), rows)
    if failed and (max_count is None or not done):
        session.say("Some migrations failed; the log says why.")
        return 2
    return int(bool(done))


def _round(session: Session, count: int, totals: dict[str, list[int]]) -> tuple[int, bool]:
    """One batch over all migrations: how many rows were filled in, and whether a migration failed."""
    done, failed = 0, False
    for name, migrate in online.MIGRATIONS.items():
        if done >= count:
            break
        try:
            found, filled = migrate(session.cells, session.conf, count - done)
        except Exception:
            LOG.exception("migration %s failed", name)
            session.say(f"Migration {name} failed.")
            failed = True
            continue
        totals[name][0] += found
        totals[name][1] += filled
        done += filled
    return done, failed


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
