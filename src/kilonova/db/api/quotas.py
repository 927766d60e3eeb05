"""Quota limits: of projects, of users in projects, and of the class `default`. -1 is no limit."""

from __future__ import annotations

import sqlalchemy as sa

from kilonova.db import exact, query
from kilonova.db.api.tables import PROJECT_USER_QUOTAS, QUOTA_CLASSES, QUOTAS
from kilonova.db.engine import Tx

DEFAULT_CLASS = "default"

Limits = dict[str, int]


def quota_get(tx: Tx, project_id: str) -> Limits:
    """The project's own limits by resource."""
    return _limits(tx, QUOTAS, project_id=project_id)


def quota_get_for_user(tx: Tx, project_id: str, user_id: str) -> Limits:
    """The user's own limits in the project by resource."""
    table = PROJECT_USER_QUOTAS
    return _limits(tx, table, project_id=project_id, user_id=user_id)


def quota_list_by_user(tx: Tx, project_id: str) -> dict[str, Limits]:
    """The own limits of every user in the project."""
    table = PROJECT_USER_QUOTAS
    found: dict[str, Limits] = {}
    statement = sa.select(table.c.user_id, table.c.resource, table.c.hard_limit).where(table.c.project_id == project_id)
    for user, resource, limit in tx.execute(statement):
        found.setdefault(user, {})[resource] = limit
    return found


def quota_class_get(tx: Tx, name: str = DEFAULT_CLASS) -> Limits:
    """The limits of a class by resource."""
    return _limits(tx, QUOTA_CLASSES, class_name=name)


def quota_set(tx: Tx, project_id: str, resource: str, limit: int, user_id: str | None = None) -> None:
    """Set a limit of the project, or of a user in it."""
    if user_id is None:
        _set(tx, QUOTAS, {"project_id": project_id, "resource": resource}, limit)
    else:
        _set(tx, PROJECT_USER_QUOTAS, {"project_id": project_id, "user_id": user_id, "resource": resource}, limit)


def quota_class_set(tx: Tx, name: str, resource: str, limit: int) -> None:
    """Set a limit of a class."""
    _set(tx, QUOTA_CLASSES, {"class_name": name, "resource": resource}, limit)


def quota_delete(tx: Tx, project_id: str, user_id: str | None = None) -> None:
    """Remove the own limits of a user in the project; without a user, of the project and all its users."""
    table = PROJECT_USER_QUOTAS
    key = {"project_id": project_id}
    if user_id is not None:
        key["user_id"] = user_id
    else:
        tx.execute(QUOTAS.delete().where(*_keyed(tx, QUOTAS, key)))
    tx.execute(table.delete().where(*_keyed(tx, table, key)))


def _limits(tx: Tx, table: sa.Table, **key: str) -> Limits:
    return query.pairs(tx, sa.select(table.c.resource, table.c.hard_limit).where(*_keyed(tx, table, key)))


def _keyed(tx: Tx, table: sa.Table, key: dict[str, str]) -> list[exact.Condition]:
    return [exact.equal(tx.dialect.name, table.c[name], value) for name, value in key.items()]


def _set(tx: Tx, table: sa.Table, key: dict[str, str], limit: int) -> None:
    where = _keyed(tx, table, key)
    if not tx.execute(table.update().where(*where).values(hard_limit=limit)).rowcount:
        query.insert(tx, table, {**key, "hard_limit": limit})
