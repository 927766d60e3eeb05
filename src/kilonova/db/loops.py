"""Leases of repair loops, and where each goes on: of many conductors one runs a loop, until it ends or dies."""

from __future__ import annotations

import contextlib
from typing import Any

import msgspec
import sqlalchemy as sa

from kilonova.db import flows, query
from kilonova.db.engine import Database
from kilonova.db.outcomes import DuplicateError
from kilonova.db.turn_tables import KN_LOOP

_C = KN_LOOP.c


class _Row(msgspec.Struct, frozen=True):
    owner: str | None
    lease_until: int
    place: str | None


class LoopLeases:
    """The leases of one process in one database. Who asks in vain has read one row."""

    def __init__(self, database: Database, owner: str) -> None:
        self._database = database
        self.owner = owner

    def take(self, loop: str, seconds: float) -> tuple[str | None] | None:
        """Have the loop for so long from now on; gives the place where it goes on, None when another one has it."""
        found = self._database.query(_get, loop)
        if found is None:
            with contextlib.suppress(DuplicateError):
                self._database.run(_make, loop)
            found = self._database.query(_get, loop)
        if found is None or (found.owner != self.owner and found.lease_until > flows.now_ms()):
            return None
        return (found.place,) if self._database.run(_lease, loop, self.owner, found, seconds) else None

    def keep(self, loop: str, seconds: float, place: str | None) -> bool:
        """Have it for longer, and note the place; False when another one has it meanwhile."""
        return self._database.run(_keep, loop, self.owner, seconds, place)

    def give_back(self, loop: str) -> None:
        """Somebody else may run it at once."""
        self._database.run(_give_back, loop, self.owner)


def _get(tx: Any, loop: str) -> _Row | None:
    found = tx.execute(sa.select(_C.owner, _C.lease_until, _C.place).where(_C.name == loop)).first()
    return None if found is None else _Row(*found)


def _make(tx: Any, loop: str) -> None:
    query.insert_many(tx, KN_LOOP, [{"name": loop, "owner": None, "lease_until": 0, "place": None}])


def _lease(tx: Any, loop: str, owner: str, seen: _Row, seconds: float) -> bool:
    was = _C.owner.is_(None) if seen.owner is None else _C.owner == seen.owner
    statement = KN_LOOP.update().where(_C.name == loop, was, _C.lease_until == seen.lease_until)
    return bool(tx.execute(statement.values(owner=owner, lease_until=_until(seconds))).rowcount)


def _keep(tx: Any, loop: str, owner: str, seconds: float, place: str | None) -> bool:
    statement = KN_LOOP.update().where(_C.name == loop, _C.owner == owner)
    return bool(tx.execute(statement.values(lease_until=_until(seconds), place=place)).rowcount)


def _give_back(tx: Any, loop: str, owner: str) -> None:
    tx.execute(KN_LOOP.update().where(_C.name == loop, _C.owner == owner).values(owner=None, lease_until=0))


def _until(seconds: float) -> int:
    return flows.now_ms() + int(seconds * 1000)
