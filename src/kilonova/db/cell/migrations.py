"""Moves of servers between hosts, as far as a server's end concerns them."""

from __future__ import annotations

import sqlalchemy as sa

from kilonova.base import clock
from kilonova.db import query
from kilonova.db.cell.tables import MIGRATIONS
from kilonova.db.engine import Tx

_C = MIGRATIONS.c
WAITING = ("finished", "confirming")
"""A resize that is done and may yet be reverted: it holds what the server had on its source host."""


def migration_uuids_waiting(tx: Tx, instance_uuid: str) -> list[str]:
    """Moves of a server that wait for their confirmation; those that were deleted with it too."""
    return query.values(tx, sa.select(_C.uuid).where(_C.instance_uuid == instance_uuid, _C.status.in_(WAITING)))


def migration_confirm(tx: Tx, uuid: str) -> None:
    """There is nothing to revert to any more; no error when it was confirmed meanwhile."""
    waits = sa.and_(_C.uuid == uuid, _C.status.in_(WAITING))
    tx.execute(sa.update(MIGRATIONS).where(waits).values(status="confirmed", updated_at=clock.naive_now()))
