"""One after the other: what is counted against a limit is counted and recorded in turns, by a row that all must write.

Whoever takes a turn holds the row until its transaction ends, so turns of a scope have one order, that of their
commits. The row sums up what was ever taken, from the time on at which it was made: of two looks the difference was
taken in between.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

import msgspec
import sqlalchemy as sa

from kilonova.db import flows, query
from kilonova.db.engine import Database
from kilonova.db.outcomes import DuplicateError
from kilonova.db.turn_tables import KN_TURN

P = ParamSpec("P")
T = TypeVar("T")

_C = KN_TURN.c


class Taken(msgspec.Struct, frozen=True):
    """What was ever taken in a scope."""

    instances: int = 0
    cores: int = 0
    ram: int = 0

    def __sub__(self, other: Taken) -> Taken:
        return Taken(self.instances - other.instances, self.cores - other.cores, self.ram - other.ram)


NOTHING: Final = Taken()


class NoTurnError(Exception):
    """The row of the scope is not there: it was never made, or is forgotten."""


def of_project(project_id: str) -> str:
    return f"project:{project_id}"


def of_user(user_id: str) -> str:
    """The scope of what is counted by user in whatever project."""
    return f"user:{user_id}"


def of_group(uuid: str) -> str:
    """The scope of where the members of a server group go."""
    return f"group:{uuid}"


def turn_look(database: Database, scope: str) -> Taken:
    """What was taken so far; there is a row to take turns by from now on."""
    found = database.query(_get, scope)
    if found is None:
        with contextlib.suppress(DuplicateError):
            database.run(_make, scope)
        found = database.query(_get, scope)
    return NOTHING if found is None else found


def turn_take(tx: Any, scope: str, more: Taken = NOTHING) -> Taken:
    """Be the next in the scope until the transaction ends; returns what was taken before.

    The first statement of its transaction: what is read after it is as whoever was before has left it. Raises
    NoTurnError without a row.
    """
    statement = KN_TURN.update().where(_C.scope == scope).values(
        instances=_C.instances + more.instances,
        cores=_C.cores + more.cores,
        ram=_C.ram + more.ram,
        updated_at=flows.now_ms(),
    )  # fmt: skip
    if not tx.execute(statement).rowcount:
        raise NoTurnError(scope)
    found = _get(tx, scope)
    assert found is not None
    return found - more


def run_in_turn(
    database: Database, scope: str, fn: Callable[Concatenate[Any, P], T], *args: P.args, **kwargs: P.kwargs
) -> T:
    """`fn(tx, ...)`, which takes the turn, in a transaction of its own."""
    while True:
        try:
            return database.run(fn, *args, **kwargs)
        except NoTurnError:
            turn_look(database, scope)


def turns_forget(tx: Any, before_ms: int, limit: int = 1000) -> int:
    """Remove the rows of scopes in which nothing was taken since; returns how many."""
    scopes = list(tx.execute(sa.select(_C.scope).where(_C.updated_at < before_ms).limit(limit)).scalars())
    if not scopes:
        return 0
    # One that is taken meanwhile is not old any more.
    return int(tx.execute(KN_TURN.delete().where(_C.scope.in_(scopes), _C.updated_at < before_ms)).rowcount)


def _get(tx: Any, scope: str) -> Taken | None:
    found = tx.execute(sa.select(_C.instances, _C.cores, _C.ram).where(_C.scope == scope)).first()
    return None if found is None else Taken(*map(int, found))


def _make(tx: Any, scope: str) -> None:
    # A row that is forgotten and made anew must not look like the old one: it goes on from the time, which is far ahead
    # of what was ever taken, so that who has seen the old one counts again.
    now = flows.now_ms()
    query.insert_many(tx, KN_TURN, [{"scope": scope, "instances": now, "cores": now, "ram": now, "updated_at": now}])
