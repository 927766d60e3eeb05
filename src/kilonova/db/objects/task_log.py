"""Which time spans a host's periodic task has worked through."""

from __future__ import annotations

import datetime
from typing import Any

import sqlalchemy as sa

from kilonova.base import clock
from kilonova.contract import exceptions, objects
from kilonova.db.cell.tables import TASK_LOG as TABLE
from kilonova.db.objects import hydrate

Moment = datetime.datetime | str
"""A time; callers on the bus send ISO 8601 text."""


def _naive(when: Moment) -> datetime.datetime:
    found = clock.naive(clock.parse(when) if isinstance(when, str) else when)
    assert found is not None
    return found


def _conditions(
    task_name: str, begin: Moment, end: Moment, host: str | None, state: str | None
) -> list[sa.ColumnElement[bool]]:
    found = [
        TABLE.c.deleted == 0,
        TABLE.c.task_name == task_name,
        TABLE.c.period_beginning == _naive(begin),
        TABLE.c.period_ending == _naive(end),
    ]
    if host is not None:
        found.append(TABLE.c.host == host)
    if state is not None:
        found.append(TABLE.c.state == state)
    return found


def begin_task(tx: sa.Connection, ctxt: Any, task: objects.TaskLog) -> None:
    """Raises TaskAlreadyRunning when the host has begun this span already."""
    values = hydrate.changed_columns(task, TABLE, skip={"id", "state", "errors"})
    try:
        hydrate.insert(tx, TABLE, {"message": "", **values, "state": "RUNNING"})
    except sa.exc.IntegrityError as err:
        raise exceptions.TaskAlreadyRunning(task_name=task.task_name, host=task.host) from err


def end_task(tx: sa.Connection, ctxt: Any, task: objects.TaskLog) -> None:
    """Raises TaskNotRunning when the host never began this span."""
    values: dict[str, Any] = {"state": "DONE", "errors": task.get("errors", 0)}
    if task.get("message"):
        values["message"] = task.message
    where = _conditions(task.task_name, task.period_beginning, task.period_ending, task.host, None)
    if not tx.execute(sa.update(TABLE).where(*where).values(**values)).rowcount:
        raise exceptions.TaskNotRunning(task_name=task.task_name, host=task.host)


def get(
    tx: sa.Connection,
    ctxt: Any,
    task_name: str,
    period_beginning: Moment,
    period_ending: Moment,
    host: str,
    state: str | None = None,
) -> objects.TaskLog | None:
    found = get_all(tx, ctxt, task_name, period_beginning, period_ending, host, state).objects
    return found[0] if found else None


def get_all(
    tx: sa.Connection,
    ctxt: Any,
    task_name: str,
    period_beginning: Moment,
    period_ending: Moment,
    host: str | None = None,
    state: str | None = None,
) -> objects.TaskLogList:
    where = _conditions(task_name, period_beginning, period_ending, host, state)
    rows = tx.execute(sa.select(TABLE).where(*where).order_by(TABLE.c.id)).mappings()
    return objects.TaskLogList(objects=[hydrate.fill(objects.TaskLog(), row) for row in rows])
