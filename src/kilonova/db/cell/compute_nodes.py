"""Compute nodes: the hypervisors and what they have. The JSON columns are texts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import sqlalchemy as sa

from kilonova.base import clock, ids
from kilonova.db import query
from kilonova.db.cell.tables import COMPUTE_NODES, SERVICES
from kilonova.db.engine import Tx
from kilonova.db.outcomes import MarkerNotFoundError
from kilonova.db.query import Row

_C = COMPUTE_NODES.c
_ALIVE = _C.deleted == 0


def compute_node_get(tx: Tx, id: int) -> Row | None:
    return query.row(tx, sa.select(COMPUTE_NODES).where(_C.id == id, _ALIVE))


def compute_node_get_by_uuid(tx: Tx, uuid: str) -> Row | None:
    return query.row(tx, sa.select(COMPUTE_NODES).where(_C.uuid == uuid, _ALIVE))


def compute_node_get_by_host(tx: Tx, host: str, nodename: str) -> Row | None:
    where = (_C.host == host, _C.hypervisor_hostname == nodename, _ALIVE)
    return query.row(tx, sa.select(COMPUTE_NODES).where(*where))


def compute_node_list(
    tx: Tx,
    *,
    host: str | None = None,
    hosts: Iterable[str] | None = None,
    uuids: Iterable[str] | None = None,
    hypervisor_match: str | None = None,
    mapped_less_than: int | None = None,
    limit: int | None = None,
    marker: int | None = None,
) -> list[Row]:
    """Compute nodes by number, narrowed by what is given. `marker` is a number. Raises MarkerNotFoundError."""
    statement = sa.select(COMPUTE_NODES).where(_ALIVE).order_by(_C.id).limit(limit)
    if host is not None:
        statement = statement.where(_C.host == host)
    if hosts is not None:
        statement = statement.where(_C.host.in_(list(hosts)))
    if uuids is not None:
        statement = statement.where(_C.uuid.in_(list(uuids)))
    if hypervisor_match is not None:
        statement = statement.where(_C.hypervisor_hostname.contains(hypervisor_match, autoescape=True))
    if mapped_less_than is not None:
        statement = statement.where(_C.mapped < mapped_less_than)
    if marker is not None:
        if compute_node_get(tx, marker) is None:
            raise MarkerNotFoundError(str(marker))
        statement = statement.where(_C.id > marker)
    return query.rows(tx, statement)


def compute_node_create(tx: Tx, values: Mapping[str, Any]) -> Row:
    """A new node; one of the same uuid that was deleted comes back with these values. Raises DuplicateError."""
    new = {"uuid": ids.new_uuid(), **query.clean(values)}
    revived = {**new, "deleted": 0, "deleted_at": None}
    with query.unique("compute_nodes"):
        back = COMPUTE_NODES.update().where(_C.uuid == new["uuid"], _C.deleted != 0).values(**revived)
        if not tx.execute(back).rowcount:
            return query.insert(tx, COMPUTE_NODES, new)
    found = compute_node_get_by_uuid(tx, new["uuid"])
    assert found is not None
    return found


def compute_node_update(tx: Tx, id: int, values: Mapping[str, Any]) -> bool:
    """Whether there is such a node. `updated_at` moves even when nothing else does: it says the host is alive."""
    new = {"updated_at": clock.naive_now(), **query.clean(values)}
    return tx.execute(COMPUTE_NODES.update().where(_C.id == id, _ALIVE).values(**new)).rowcount > 0


def compute_node_delete(tx: Tx, id: int, host: str | None = None) -> bool:
    """Mark the node as deleted (if it is still this host's); whether there was one."""
    where = [_C.id == id] if host is None else [_C.id == id, _C.host == host]
    return tx.execute(query.soft_deleted(COMPUTE_NODES, *where)).rowcount > 0


def compute_node_set_mapped(tx: Tx, ids: Iterable[int], mapped: int = 1) -> None:
    """Note that the nodes' hosts are mapped to the cell."""
    numbers = list(ids)
    if numbers:
        statement = COMPUTE_NODES.update().where(_C.id.in_(numbers)).values(mapped=mapped, updated_at=_C.updated_at)
        tx.execute(statement)


def compute_node_unmap(tx: Tx, host: str | None = None) -> None:
    """Note that the host's nodes (or all) are not mapped any more."""
    where = [_ALIVE] if host is None else [_ALIVE, _C.host == host]
    tx.execute(COMPUTE_NODES.update().where(*where).values(mapped=0, updated_at=_C.updated_at))


AMOUNTS = (
    "vcpus",
    "memory_mb",
    "local_gb",
    "vcpus_used",
    "memory_mb_used",
    "local_gb_used",
    "free_ram_mb",
    "free_disk_gb",
    "current_workload",
    "running_vms",
    "disk_available_least",
)
"""What a node has and uses: the columns that can be added up."""


def compute_node_statistics(tx: Tx) -> Row:
    """Sums over the nodes whose nova-compute is enabled: `count` and the amounts by column."""
    sums = [sa.func.coalesce(sa.func.sum(_C[name]), 0).label(name) for name in AMOUNTS]
    service = (
        SERVICES.c.host == _C.host,
        SERVICES.c.binary == "nova-compute",
        SERVICES.c.deleted == 0,
        SERVICES.c.disabled.is_(False),
    )
    found = query.row(tx, sa.select(sa.func.count().label("count"), *sums).where(_ALIVE, sa.exists().where(*service)))
    assert found is not None
    return {name: int(value) for name, value in found.items()}
