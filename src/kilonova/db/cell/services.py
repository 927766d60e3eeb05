"""Service records and their heartbeats."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from typing import Any

import sqlalchemy as sa

from kilonova.base import clock, ids
from kilonova.db import exact, query
from kilonova.db.cell.tables import SERVICES
from kilonova.db.engine import Tx
from kilonova.db.query import Row

_C = SERVICES.c
_ALIVE = _C.deleted == 0


def service_get(tx: Tx, id: int) -> Row | None:
    return query.row(tx, sa.select(SERVICES).where(_C.id == id, _ALIVE))


def service_get_by_uuid(tx: Tx, uuid: str) -> Row | None:
    return query.row(tx, sa.select(SERVICES).where(_C.uuid == uuid, _ALIVE))


def service_get_by_host(tx: Tx, host: str, binary: str) -> Row | None:
    return query.row(tx, sa.select(SERVICES).where(*_of(tx, host, binary), _ALIVE))


def service_list(
    tx: Tx,
    *,
    binary: str | None = None,
    topic: str | None = None,
    host: str | None = None,
    hosts: Iterable[str] | None = None,
    disabled: bool | None = None,
) -> list[Row]:
    """Services by number, narrowed by what is given."""
    wanted = {_C.binary: binary, _C.topic: topic, _C.host: host, _C.disabled: disabled}
    where = [column == value for column, value in wanted.items() if value is not None]
    if hosts is not None:
        where.append(_C.host.in_(list(hosts)))
    return query.rows(tx, sa.select(SERVICES).where(_ALIVE, *where).order_by(_C.id))


def service_create(tx: Tx, values: Mapping[str, Any]) -> Row:
    """A new record: `host`, `binary`, `topic`, `version` (a uuid is made when missing). Raises DuplicateError."""
    return query.insert(tx, SERVICES, {"uuid": ids.new_uuid(), **values})


def service_update(tx: Tx, id: int, values: Mapping[str, Any]) -> bool:
    """Whether there is such a service."""
    statement = SERVICES.update().where(_C.id == id, _ALIVE).values(**query.clean(values))
    return tx.execute(statement).rowcount > 0


def service_delete(tx: Tx, id: int) -> bool:
    """Mark the record as deleted; whether there was one."""
    return tx.execute(query.soft_deleted(SERVICES, _C.id == id)).rowcount > 0


def service_minimum_version(tx: Tx, binaries: Iterable[str]) -> dict[str, int | None]:
    """The lowest version in use of each binary, 0 where one tells none; None when there is no such service.

    One forced down is not in use.
    """
    found: dict[str, int | None] = dict.fromkeys(binaries)
    counted = (_C.binary.in_(list(found)), _ALIVE, _C.forced_down.is_not(True))
    statement = sa.select(_C.binary, sa.func.min(sa.func.coalesce(_C.version, 0))).where(*counted)
    found.update(query.pairs(tx, statement.group_by(_C.binary)))
    return found


def is_up(service: Row, service_down_time: float, now: datetime.datetime | None = None) -> bool:
    """Whether its last report is younger than `service_down_time` seconds and nobody declared it down."""
    if service["forced_down"]:
        return False
    last = service["last_seen_up"] or service["created_at"]
    when = clock.naive(now) or clock.naive_now()
    return last is not None and abs((when - last).total_seconds()) <= service_down_time


def _of(tx: Tx, host: str, binary: str) -> list[exact.Condition]:
    return [exact.equal(tx.dialect.name, column, value) for column, value in ((_C.host, host), (_C.binary, binary))]
