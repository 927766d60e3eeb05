"""Permissions to open a console: what is kept is a hash of the token, so that the database gives none away."""

from __future__ import annotations

import hashlib
from typing import Any

import sqlalchemy as sa

from kilonova.base import clock, ids
from kilonova.contract import exceptions, objects
from kilonova.db.cell.tables import CONSOLE_AUTH_TOKENS as TABLE
from kilonova.db.cell.tables import INSTANCES
from kilonova.db.objects import hydrate


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def authorize(tx: sa.Connection, ctxt: Any, auth: objects.ConsoleAuthToken, ttl: int) -> str:
    """Store a permission that holds for `ttl` seconds; returns its token, which is nowhere else.

    Raises ObjectActionError (stored already), InstanceNotFound, TokenInUse.
    """
    if auth.obj_attr_is_set("id"):
        raise exceptions.ObjectActionError(action="authorize", reason="already authorized")
    alive = sa.select(INSTANCES.c.id).where(INSTANCES.c.uuid == auth.instance_uuid, INSTANCES.c.deleted == 0)
    if tx.execute(alive).first() is None:
        raise exceptions.InstanceNotFound(instance_id=auth.instance_uuid)
    token = ids.new_uuid()
    values = hydrate.changed_columns(auth, TABLE)
    values |= {"token_hash": _hash(token), "expires": int(clock.seconds()) + ttl}
    try:
        row = hydrate.insert(tx, TABLE, values)
    except sa.exc.IntegrityError as err:
        raise exceptions.TokenInUse from err
    hydrate.fill(auth, {**row, "token": token})
    return token


def validate(tx: sa.Connection, ctxt: Any, token: str) -> objects.ConsoleAuthToken:
    """Raises InvalidToken when there is none or its time is over."""
    query = sa.select(TABLE).where(TABLE.c.token_hash == _hash(token), TABLE.c.expires > int(clock.seconds()))
    row = tx.execute(query).mappings().first()
    if row is None:
        raise exceptions.InvalidToken(token="***")  # noqa: S106 - what is shown instead of it
    return hydrate.fill(objects.ConsoleAuthToken(), {**row, "token": token})


def clean_for_instance(tx: sa.Connection, ctxt: Any, instance_uuid: str) -> None:
    tx.execute(sa.delete(TABLE).where(TABLE.c.instance_uuid == instance_uuid))


def clean_expired(tx: sa.Connection, ctxt: Any) -> None:
    tx.execute(sa.delete(TABLE).where(TABLE.c.expires <= int(clock.seconds())))


def clean_expired_for_host(tx: sa.Connection, ctxt: Any, host: str) -> None:
    tx.execute(sa.delete(TABLE).where(TABLE.c.host == host, TABLE.c.expires <= int(clock.seconds())))
