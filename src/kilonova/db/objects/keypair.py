"""Key pairs."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from kilonova.contract import exceptions, objects
from kilonova.db.api import key_pairs
from kilonova.db.api.tables import KEY_PAIRS
from kilonova.db.objects import hydrate
from kilonova.db.objects.hydrate import Row
from kilonova.db.outcomes import DuplicateError, MarkerNotFoundError


def _fill(key_pair: objects.KeyPair, row: Row) -> objects.KeyPair:
    return hydrate.fill(key_pair, {**row, "deleted": False, "deleted_at": None})


def get_by_name(tx: sa.Connection, ctxt: Any, user_id: str, name: str, localonly: bool = False) -> objects.KeyPair:
    """`localonly` asks for those in the cell database, where none are. Raises KeypairNotFound."""
    row = None if localonly else key_pairs.key_pair_get(tx, user_id, name)
    if row is None:
        raise exceptions.KeypairNotFound(user_id=user_id, name=name)
    return _fill(objects.KeyPair(), row)


def get_by_user(
    tx: sa.Connection, ctxt: Any, user_id: str, limit: int | None = None, marker: str | None = None
) -> objects.KeyPairList:
    """A page of a user's key pairs by name. Raises MarkerNotFound."""
    try:
        rows = key_pairs.key_pair_list(tx, user_id, limit=limit, marker=marker)
    except MarkerNotFoundError as exc:
        raise exceptions.MarkerNotFound(marker=marker) from exc
    return objects.KeyPairList(objects=[_fill(objects.KeyPair(), row) for row in rows])


def get_count_by_user(tx: sa.Connection, ctxt: Any, user_id: str) -> int:
    return key_pairs.key_pair_count(tx, user_id)


def create(tx: sa.Connection, ctxt: Any, key_pair: objects.KeyPair) -> None:
    """Raises KeyPairExists."""
    if key_pair.obj_attr_is_set("id"):
        raise exceptions.ObjectActionError(action="create", reason="already created")
    try:
        row = key_pairs.key_pair_create(tx, hydrate.changed_columns(key_pair, KEY_PAIRS))
    except DuplicateError as exc:
        raise exceptions.KeyPairExists(key_name=key_pair.name) from exc
    _fill(key_pair, row)


def destroy(tx: sa.Connection, ctxt: Any, key_pair: objects.KeyPair) -> None:
    """Raises KeypairNotFound."""
    destroy_by_name(tx, ctxt, key_pair.user_id, key_pair.name)


def destroy_by_name(tx: sa.Connection, ctxt: Any, user_id: str, name: str) -> None:
    """Raises KeypairNotFound."""
    if not key_pairs.key_pair_delete(tx, user_id, name):
        raise exceptions.KeypairNotFound(user_id=user_id, name=name)
