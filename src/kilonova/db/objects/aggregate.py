"""Host aggregates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from kilonova.base import ids as new_ids
from kilonova.contract import exceptions, objects
from kilonova.db import query
from kilonova.db.api import aggregates
from kilonova.db.api.tables import AGGREGATE_HOSTS, AGGREGATE_METADATA, AGGREGATES
from kilonova.db.objects import hydrate
from kilonova.db.objects.hydrate import Row
from kilonova.db.outcomes import DuplicateError


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


def _fill(aggregate: objects.Aggregate, row: Row) -> None:
    hydrate.fill(aggregate, {**row, "deleted": False, "deleted_at": None})


def _existing(tx: sa.Connection, number: int) -> Row:
    row = aggregates.aggregate_get(tx, number)
    if row is None:
        raise exceptions.AggregateNotFound(aggregate_id=number)
    return row


def _refuse_hosts(aggregate: objects.Aggregate, action: str) -> None:
    if "hosts" in aggregate.obj_what_changed():
        raise exceptions.ObjectActionError(action=action, reason="hosts are added and deleted one by one")


def create(tx: sa.Connection, ctxt: Any, aggregate: objects.Aggregate) -> None:
    """Raises AggregateNameExists."""
    if aggregate.obj_attr_is_set("id"):
        raise exceptions.ObjectActionError(action="create", reason="already created")
    _refuse_hosts(aggregate, "create")
    values = {"uuid": new_ids.new_uuid(), **hydrate.changed_columns(aggregate, AGGREGATES)}
    try:
        row = query.insert(tx, AGGREGATES, values)
    except DuplicateError as exc:
        raise exceptions.AggregateNameExists(aggregate_name=aggregate.name) from exc
    metadata = dict(aggregate.get("metadata") or {})
    aggregates.aggregate_metadata_update(tx, row["id"], metadata)
    _fill(aggregate, {**row, "hosts": [], "metadata": metadata})


def save(tx: sa.Connection, ctxt: Any, aggregate: objects.Aggregate) -> None:
    """Write what changed; metadata are replaced as a whole. Raises AggregateNotFound, AggregateNameExists."""
    _refuse_hosts(aggregate, "save")
    present = _existing(tx, aggregate.id)
    if "metadata" in aggregate.obj_what_changed():
        gone = dict.fromkeys(present["metadata"])
        aggregates.aggregate_metadata_update(tx, aggregate.id, {**gone, **(aggregate.metadata or {})})
    if values := hydrate.changed_columns(aggregate, AGGREGATES, skip={"id"}):
        try:
            aggregates.aggregate_update(tx, aggregate.id, values)
        except DuplicateError as exc:
            raise exceptions.AggregateNameExists(aggregate_name=aggregate.name) from exc
    _fill(aggregate, _existing(tx, aggregate.id))


def update_metadata(tx: sa.Connection, ctxt: Any, aggregate: objects.Aggregate, updates: Mapping[str, Any]) -> None:
    """Write these keys, None takes one away; the others stay. Raises AggregateNotFound."""
    _existing(tx, aggregate.id)
    aggregates.aggregate_metadata_update(tx, aggregate.id, updates)
    merged = {**(aggregate.metadata or {}), **updates}
    aggregate.metadata = {key: value for key, value in merged.items() if value is not None}
    aggregate.obj_reset_changes(["metadata"])


def destroy(tx: sa.Connection, ctxt: Any, aggregate: objects.Aggregate) -> None:
    """Raises AggregateNotFound."""
    if not aggregates.aggregate_delete(tx, aggregate.id):
        raise exceptions.AggregateNotFound(aggregate_id=aggregate.id)


def add_host(tx: sa.Connection, ctxt: Any, aggregate: objects.Aggregate, host: str) -> None:
    """Raises AggregateNotFound, AggregateHostExists."""
    _existing(tx, aggregate.id)
    try:
        aggregates.aggregate_host_add(tx, aggregate.id, host)
    except DuplicateError as exc:
        raise exceptions.AggregateHostExists(aggregate_id=aggregate.id, host=host) from exc
    aggregate.hosts = [*(aggregate.hosts or []), host]
    aggregate.obj_reset_changes(["hosts"])


def delete_host(tx: sa.Connection, ctxt: Any, aggregate: objects.Aggregate, host: str) -> None:
    """Raises AggregateNotFound, AggregateHostNotFound."""
    _existing(tx, aggregate.id)
    if not aggregates.aggregate_host_delete(tx, aggregate.id, host):
        raise exceptions.AggregateHostNotFound(aggregate_id=aggregate.id, host=host)
    aggregate.hosts = [one for one in aggregate.hosts or () if one != host]
    aggregate.obj_reset_changes(["hosts"])
