"""Host aggregates."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from kilonova.contract import exceptions, objects
from kilonova.db.api.tables import AGGREGATE_HOSTS, AGGREGATE_METADATA, AGGREGATES
from kilonova.db.objects import hydrate
from kilonova.db.objects.hydrate import Row


def load_many(tx: sa.Connection, rows: list[Row]) -> objects.AggregateList:
    """Aggregates with hosts and metadata; two more statements however many."""
    ids = [row["id"] for row in rows]
    hosts: dict[int, list[str]] = {}
    for member in tx.execute(sa.select(AGGREGATE_HOSTS).where(AGGREGATE_HOSTS.c.aggregate_id.in_(ids))).mappings():
        hosts.setdefault(member["aggregate_id"], []).append(member["host"])
    metadata: dict[int, dict[str, str]] = {}
    for pair in tx.execute(sa.select(AGGREGATE_METADATA).where(AGGREGATE_METADATA.c.aggregate_id.in_(ids))).mappings():
        metadata.setdefault(pair["aggregate_id"], {})[pair["key"]] = pair["value"]
    found = []
    for row in rows:
        parts = {"hosts": hosts.get(row["id"], []), "metadata": metadata.get(row["id"], {})}
        found.append(hydrate.fill(objects.Aggregate(), {**row, **parts, "deleted": False, "deleted_at": None}))
    return objects.AggregateList(objects=found)


def _where(tx: sa.Connection, *conditions: sa.ColumnElement[bool]) -> objects.AggregateList:
    rows = list(tx.execute(sa.select(AGGREGATES).where(*conditions).order_by(AGGREGATES.c.id)).mappings())
    return load_many(tx, rows)


def get_all(tx: sa.Connection, ctxt: Any) -> objects.AggregateList:
    return _where(tx)


def get_by_id(tx: sa.Connection, ctxt: Any, aggregate_id: int) -> objects.Aggregate:
    """Raises AggregateNotFound."""
    found = _where(tx, AGGREGATES.c.id == aggregate_id).objects
    if not found:
        raise exceptions.AggregateNotFound(aggregate_id=aggregate_id)
    return found[0]


def get_by_uuid(tx: sa.Connection, ctxt: Any, aggregate_uuid: str) -> objects.Aggregate:
    """Raises AggregateNotFound."""
    found = _where(tx, AGGREGATES.c.uuid == aggregate_uuid).objects
    if not found:
        raise exceptions.AggregateNotFound(aggregate_id=aggregate_uuid)
    return found[0]


def _with_key(key: str, value: str | None = None) -> sa.ColumnElement[bool]:
    pairs = sa.select(AGGREGATE_METADATA.c.aggregate_id).where(AGGREGATE_METADATA.c.key == key)
    if value is not None:
        pairs = pairs.where(AGGREGATE_METADATA.c.value == value)
    return AGGREGATES.c.id.in_(pairs)


def get_by_host(tx: sa.Connection, ctxt: Any, host: str, key: str | None = None) -> objects.AggregateList:
    members = sa.select(AGGREGATE_HOSTS.c.aggregate_id).where(AGGREGATE_HOSTS.c.host == host)
    return _where(tx, AGGREGATES.c.id.in_(members), *([_with_key(key)] if key else []))


def get_by_metadata(
    tx: sa.Connection, ctxt: Any, key: str | None = None, value: str | None = None
) -> objects.AggregateList:
    return _where(tx, *([_with_key(key, value)] if key else []))


def get_by_metadata_key(tx: sa.Connection, ctxt: Any, key: str, hosts: set[str] | None = None) -> objects.AggregateList:
    some = sa.select(AGGREGATE_HOSTS.c.aggregate_id).where(AGGREGATE_HOSTS.c.host.in_(list(hosts or ())))
    return _where(tx, _with_key(key), *([AGGREGATES.c.id.in_(some)] if hosts is not None else []))
