"""Key pairs."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from kilonova.contract import exceptions, objects
from kilonova.db.api.tables import KEY_PAIRS
from kilonova.db.objects import hydrate


def get_by_name(tx: sa.Connection, ctxt: Any, user_id: str, name: str, localonly: bool = False) -> objects.KeyPair:
    """Raises KeypairNotFound."""
    query = sa.select(KEY_PAIRS).where(KEY_PAIRS.c.user_id == user_id, KEY_PAIRS.c.name == name)
    row = tx.execute(query).mappings().first()
    if row is None:
        raise exceptions.KeypairNotFound(user_id=user_id, name=name)
    return hydrate.fill(objects.KeyPair(), {**row, "deleted": False, "deleted_at": None})


def get_by_user(
    tx: sa.Connection, ctxt: Any, user_id: str, limit: int | None = None, marker: str | None = None
) -> objects.KeyPairList:
    query = sa.select(KEY_PAIRS).where(KEY_PAIRS.c.user_id == user_id).order_by(KEY_PAIRS.c.name).limit(limit)
    if marker is not None:
        query = query.where(KEY_PAIRS.c.name > marker)
    rows = tx.execute(query).mappings()
    kept = [hydrate.fill(objects.KeyPair(), {**row, "deleted": False, "deleted_at": None}) for row in rows]
    return objects.KeyPairList(objects=kept)


def get_count_by_user(tx: sa.Connection, ctxt: Any, user_id: str) -> int:
    query = sa.select(sa.func.count()).select_from(KEY_PAIRS).where(KEY_PAIRS.c.user_id == user_id)
    return int(tx.execute(query).scalar_one())
