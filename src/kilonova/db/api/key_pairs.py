"""Key pairs, named per user."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from kilonova.db import exact, query
from kilonova.db.api.tables import KEY_PAIRS
from kilonova.db.engine import Tx
from kilonova.db.outcomes import MarkerNotFoundError
from kilonova.db.query import Row

_C = KEY_PAIRS.c


def key_pair_get(tx: Tx, user_id: str, name: str) -> Row | None:
    return query.row(tx, sa.select(KEY_PAIRS).where(*_named(tx, user_id, name)))


def key_pair_list(tx: Tx, user_id: str, *, limit: int | None = None, marker: str | None = None) -> list[Row]:
    """A page of a user's key pairs by name. `marker` is a name. Raises MarkerNotFoundError."""
    statement = sa.select(KEY_PAIRS).where(_C.user_id == user_id).order_by(_C.name, _C.id).limit(limit)
    if marker is not None:
        if key_pair_get(tx, user_id, marker) is None:
            raise MarkerNotFoundError(marker)
        statement = statement.where(_C.name > marker)
    return query.rows(tx, statement)


def key_pair_count(tx: Tx, user_id: str) -> int:
    statement = sa.select(sa.func.count()).select_from(KEY_PAIRS).where(_C.user_id == user_id)
    return int(tx.execute(statement).scalar_one())


def key_pair_create(tx: Tx, values: Mapping[str, Any]) -> Row:
    """A new key pair: `user_id`, `name`, `type`, `fingerprint`, `public_key`. Raises DuplicateError."""
    query.untaken(tx, _C.name, values["name"], _C.user_id == values["user_id"])
    return query.insert(tx, KEY_PAIRS, values)


def key_pair_delete(tx: Tx, user_id: str, name: str) -> bool:
    """Whether there was such a key pair."""
    return tx.execute(KEY_PAIRS.delete().where(*_named(tx, user_id, name))).rowcount > 0


def _named(tx: Tx, user_id: str, name: str) -> list[exact.Condition]:
    return [exact.equal(tx.dialect.name, column, value) for column, value in ((_C.user_id, user_id), (_C.name, name))]
