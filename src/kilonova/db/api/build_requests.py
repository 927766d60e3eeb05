"""Build requests: accepted servers in no cell yet. `instance`, `block_device_mappings`, `tags` are JSON texts."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from typing import Any

import sqlalchemy as sa

from kilonova.db import query
from kilonova.db.api.tables import BUILD_REQUESTS, INSTANCE_MAPPINGS
from kilonova.db.engine import Tx
from kilonova.db.query import Row

_C = BUILD_REQUESTS.c


def build_request_get(tx: Tx, instance_uuid: str) -> Row | None:
    return query.row(tx, sa.select(BUILD_REQUESTS).where(_C.instance_uuid == instance_uuid))


def build_request_list(tx: Tx, *, project_id: str | None = None) -> list[Row]:
    """The newest first; there are few of them, so filters beyond these are the caller's."""
    statement = sa.select(BUILD_REQUESTS).order_by(_C.created_at.desc(), _C.id.desc())
    if project_id is not None:
        statement = statement.where(_C.project_id == project_id)
    return query.rows(tx, statement)


def build_requests_among(tx: Tx, instance_uuids: Iterable[str]) -> set[str]:
    """Which of the instances are still asked for; what was asked is not read."""
    statement = sa.select(_C.instance_uuid)
    parts = (query.values(tx, statement.where(_C.instance_uuid.in_(part))) for part in query.slices(instance_uuids))
    return {uuid for part in parts for uuid in part}


def build_request_old(tx: Tx, before: datetime.datetime, *, after: int = 0, limit: int = 500) -> list[Row]:
    """A page, by number, of the requests made before a time (naive UTC): `id`, whose they are, and when they came."""
    columns = (_C.id, _C.instance_uuid, _C.project_id, _C.created_at)
    statement = sa.select(*columns).where(_C.created_at < before, _C.id > after)
    return query.rows(tx, statement.order_by(_C.id).limit(limit))


def build_request_unplaced(tx: Tx, project_id: str) -> list[str]:
    """The instances of a project that are only asked for: no cell has them yet."""
    mapping = INSTANCE_MAPPINGS.c
    statement = (
        sa.select(_C.instance_uuid)
        .outerjoin_from(BUILD_REQUESTS, INSTANCE_MAPPINGS, _C.instance_uuid == mapping.instance_uuid)
        .where(_C.project_id == project_id, mapping.cell_id.is_(None))
    )
    return list(tx.execute(statement).scalars())


def build_request_instances(tx: Tx, instance_uuids: Iterable[str]) -> dict[str, str]:
    """The JSON text of each instance that is still asked for."""
    statement = sa.select(_C.instance_uuid, _C.instance)
    found: dict[str, str] = {}
    for part in query.slices(instance_uuids):
        found |= query.pairs(tx, statement.where(_C.instance_uuid.in_(part)))
    return found


def build_request_create(tx: Tx, values: Mapping[str, Any]) -> Row:
    """A new build request. Raises DuplicateError."""
    return query.insert(tx, BUILD_REQUESTS, values)


def build_request_create_many(tx: Tx, new: Iterable[Mapping[str, Any]]) -> None:
    """New build requests by one statement. Raises DuplicateError."""
    query.insert_many(tx, BUILD_REQUESTS, list(new))


def build_request_update(tx: Tx, instance_uuid: str, values: Mapping[str, Any]) -> bool:
    """Whether there is such a build request."""
    return tx.execute(BUILD_REQUESTS.update().where(_C.instance_uuid == instance_uuid).values(**values)).rowcount > 0


def build_request_delete(tx: Tx, instance_uuid: str) -> bool:
    """Whether it was there: of two who delete it, one is told so."""
    return tx.execute(BUILD_REQUESTS.delete().where(_C.instance_uuid == instance_uuid)).rowcount > 0
