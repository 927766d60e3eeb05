"""The lock of a server, by which it is kept from its user: who set it, and why."""

from __future__ import annotations

import sqlalchemy as sa

from kilonova.db.cell import instances
from kilonova.db.objects import pairs
from kilonova.db.objects.instance import PAIRS

REASON = "locked_reason"
"""Kept among the system metadata."""


def lock(tx: sa.Connection, uuid: str, by: str, reason: str | None) -> None:
    """Lock a server. `by`: "owner" or "admin"."""
    instances.instance_update(tx, uuid, {"locked": True, "locked_by": by})
    _remember(tx, uuid, reason)


def unlock(tx: sa.Connection, uuid: str) -> None:
    instances.instance_update(tx, uuid, {"locked": False, "locked_by": None})
    _remember(tx, uuid, None)


def _remember(tx: sa.Connection, uuid: str, reason: str | None) -> None:
    present = pairs.read(tx, PAIRS["system_metadata"], [uuid]).get(uuid, {})
    wanted = {key: value for key, value in present.items() if key != REASON} | ({REASON: reason} if reason else {})
    if wanted != present:
        pairs.replace(tx, PAIRS["system_metadata"], uuid, wanted)
