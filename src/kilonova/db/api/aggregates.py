"""Host aggregates. Rows carry `hosts` (list) and `metadata` (dict)."""

from __future__ import annotations

import collections
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from kilonova.base import ids
from kilonova.db import exact, query
from kilonova.db.api.tables import AGGREGATE_HOSTS, AGGREGATE_METADATA, AGGREGATES
from kilonova.db.engine import Tx
from kilonova.db.query import Row

_C = AGGREGATES.c
_HOST = AGGREGATE_HOSTS.c
_META = AGGREGATE_METADATA.c


def aggregate_get(tx: Tx, id: int) -> Row | None:
    return _first(aggregate_list(tx, ids=[id]))


def aggregate_list(
    tx: Tx, *, ids: Iterable[int] | None = None, host: str | None = None, key: str | None = None
) -> list[Row]:
    """Aggregates by number: these, those with the host, those whose metadata have the key, or all."""
    statement = sa.select(AGGREGATES).order_by(_C.id)
    if ids is not None:
        statement = statement.where(_C.id.in_(list(ids)))
    if host is not None:
        statement = statement.where(sa.exists().where(_HOST.aggregate_id == _C.id, _HOST.host == host))
    if key is not None:
        statement = statement.where(sa.exists().where(_META.aggregate_id == _C.id, _META.key == key))
    return _whole(tx, query.rows(tx, statement))


def aggregate_create(tx: Tx, name: str, metadata: Mapping[str, str] | None = None) -> Row:
    """A new aggregate without hosts. Raises DuplicateError when the name is taken."""
    query.untaken(tx, _C.name, name)
    created = query.insert(tx, AGGREGATES, {"uuid": ids.new_uuid(), "name": name})
    aggregate_metadata_update(tx, created["id"], metadata or {})
    return {**created, "hosts": [], "metadata": dict(metadata or {})}


def aggregate_update(tx: Tx, id: int, values: Mapping[str, Any]) -> bool:
    """Whether there is such an aggregate. Raises DuplicateError when the new name is taken."""
    if "name" in values:
        query.untaken(tx, _C.name, values["name"], _C.id != id)
    with query.unique("aggregates"):
        return tx.execute(AGGREGATES.update().where(_C.id == id).values(**values)).rowcount > 0


def aggregate_metadata_update(tx: Tx, id: int, metadata: Mapping[str, str | None]) -> None:
    """Write these keys; None removes one."""
    table = AGGREGATE_METADATA
    if not metadata:
        return
    present = query.values(tx, sa.select(_META.key).where(_META.aggregate_id == id))
    query.no_clash(table, [key for key, value in metadata.items() if value is not None], present)
    named = exact.among(tx.dialect.name, _META.key, metadata)
    tx.execute(table.delete().where(_META.aggregate_id == id, named))
    new = [{"aggregate_id": id, "key": k, "value": v} for k, v in metadata.items() if v is not None]
    query.insert_many(tx, table, new)


def aggregate_host_add(tx: Tx, id: int, host: str) -> None:
    """Raises DuplicateError when the host is in the aggregate."""
    query.insert(tx, AGGREGATE_HOSTS, {"aggregate_id": id, "host": host})


def aggregate_host_delete(tx: Tx, id: int, host: str) -> bool:
    """Whether the host was in the aggregate."""
    return tx.execute(AGGREGATE_HOSTS.delete().where(_HOST.aggregate_id == id, _is(tx, host))).rowcount > 0


def _is(tx: Tx, host: str) -> exact.Condition:
    return exact.equal(tx.dialect.name, _HOST.host, host)


def aggregate_delete(tx: Tx, id: int) -> bool:
    """Whether there was such an aggregate. Its hosts must be out."""
    tx.execute(AGGREGATE_METADATA.delete().where(_META.aggregate_id == id))
    return tx.execute(AGGREGATES.delete().where(_C.id == id)).rowcount > 0


_ZONES = (
    sa.select(_HOST.host, _META.value)
    .join_from(AGGREGATE_HOSTS, AGGREGATE_METADATA, _HOST.aggregate_id == _META.aggregate_id)
    .where(_META.key == "availability_zone")
    .order_by(_META.id)
)
_ZONES_OF_HOSTS = _ZONES.where(_HOST.host.in_(sa.bindparam("hosts", expanding=True)))


def availability_zones_by_host(tx: Tx, hosts: Iterable[str] | None = None) -> dict[str, str]:
    """The zone of each host that an aggregate gives one."""
    found = tx.execute(_ZONES) if hosts is None else tx.execute(_ZONES_OF_HOSTS, {"hosts": list(hosts)})
    return {host: zone for host, zone in found}  # noqa: C416 - rows are no pairs to the type checker


def _whole(tx: Tx, found: Sequence[Row]) -> list[Row]:
    numbers = [row["id"] for row in found]
    hosts: dict[int, list[str]] = collections.defaultdict(list)
    metadata: dict[int, dict[str, str]] = collections.defaultdict(dict)
    if numbers:
        statement = sa.select(_HOST.aggregate_id, _HOST.host).where(_HOST.aggregate_id.in_(numbers)).order_by(_HOST.id)
        for number, host in tx.execute(statement):
            hosts[number].append(host)
        pairs = sa.select(_META.aggregate_id, _META.key, _META.value).where(_META.aggregate_id.in_(numbers))
        for number, key, value in tx.execute(pairs):
            metadata[number][key] = value
    return [{**row, "hosts": hosts[row["id"]], "metadata": metadata[row["id"]]} for row in found]


def _first(found: Sequence[Row]) -> Row | None:
    return found[0] if found else None
