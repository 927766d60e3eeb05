"""What was done to an instance, for those who show it: actions, and their events on the hosts.

What writes them is db/objects/action.py.
"""

from __future__ import annotations

import datetime

import sqlalchemy as sa

from kilonova.db import query, sorting
from kilonova.db.cell.tables import INSTANCE_ACTIONS, INSTANCE_ACTIONS_EVENTS
from kilonova.db.engine import Tx
from kilonova.db.outcomes import MarkerNotFoundError
from kilonova.db.query import Row

_A = INSTANCE_ACTIONS.c
_E = INSTANCE_ACTIONS_EVENTS.c
_NEWEST = (("created_at", "desc"), ("id", "desc"))


def action_list(
    tx: Tx,
    instance_uuid: str,
    *,
    limit: int | None = None,
    marker: str | None = None,
    changes_since: datetime.datetime | None = None,
    changes_before: datetime.datetime | None = None,
) -> list[Row]:
    """A page of actions, the newest first. `marker` is a request id. Raises MarkerNotFoundError."""
    if limit == 0:
        return []
    statement = sa.select(INSTANCE_ACTIONS).where(_A.instance_uuid == instance_uuid, _A.deleted == 0)
    if changes_since is not None:
        statement = statement.where(query.changed_since(INSTANCE_ACTIONS, changes_since))
    if changes_before is not None:
        statement = statement.where(query.changed_before(INSTANCE_ACTIONS, changes_before))
    if marker is not None:
        last = action_get(tx, instance_uuid, marker)
        if last is None:
            raise MarkerNotFoundError(marker)
        statement = statement.where(sorting.after(tx, INSTANCE_ACTIONS, _NEWEST, last))
    order = sorting.ordered(tx, INSTANCE_ACTIONS, _NEWEST)
    return query.rows(tx, statement.order_by(*order).limit(limit))


def action_get(tx: Tx, instance_uuid: str, request_id: str) -> Row | None:
    """The action of a request; the newest if it has several."""
    where = (_A.instance_uuid == instance_uuid, _A.request_id == request_id, _A.deleted == 0)
    return query.row(tx, sa.select(INSTANCE_ACTIONS).where(*where).order_by(_A.id.desc()).limit(1))


def event_list(tx: Tx, action_id: int) -> list[Row]:
    """The events of an action, the newest first."""
    where = (_E.action_id == action_id, _E.deleted == 0)
    return query.rows(tx, sa.select(INSTANCE_ACTIONS_EVENTS).where(*where).order_by(_E.created_at.desc(), _E.id.desc()))
