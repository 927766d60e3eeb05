"""What hangs on instances, read for a whole page at once: one statement per part, however long the page.

Each part puts one key into every row:

    metadata, system_metadata   dict of texts
    tags, security_groups       sorted list of names
    fault                       the newest fault as a row, or None
    info_cache                  the row of the info cache (`network_info` is JSON text), or None
    pci_devices, services       list of rows
    block_device_mappings       list of rows
    volumes                     list of rows (volume_id, delete_on_termination)
    extra                       dict of columns of instance_extra (JSON texts); asked for by the columns' names
"""

from __future__ import annotations

import collections
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

import sqlalchemy as sa

from kilonova.db import query
from kilonova.db.cell.tables import (
    BLOCK_DEVICE_MAPPING,
    INSTANCE_EXTRA,
    INSTANCE_FAULTS,
    INSTANCE_INFO_CACHES,
    INSTANCE_METADATA,
    INSTANCE_SYSTEM_METADATA,
    PCI_DEVICES,
    SECURITY_GROUP_INSTANCE_ASSOCIATION,
    SECURITY_GROUPS,
    SERVICES,
    TAGS,
)
from kilonova.db.engine import Tx
from kilonova.db.query import Row

EXTRA = frozenset(
    {
        "device_metadata",
        "flavor",
        "keypairs",
        "migration_context",
        "numa_topology",
        "pci_requests",
        "resources",
        "trusted_certs",
        "vcpu_model",
    }
)
"""Columns of instance_extra."""

_CHUNK = 5000
"""Values in one IN list; databases limit the number of parameters."""


def attach(tx: Tx, found: Sequence[Row], parts: Iterable[str]) -> None:
    """Read the parts of these instances and put them into the rows. Raises KeyError for an unknown part."""
    asked = set(parts)
    extra = asked & EXTRA
    loaders = [_LOADERS[part] for part in sorted(asked - EXTRA)]
    for start in range(0, len(found), _CHUNK):
        chunk = found[start : start + _CHUNK]
        uuids = [row["uuid"] for row in chunk]
        for load in loaders:
            load(tx, chunk, uuids)
        if extra:
            _extra(tx, chunk, uuids, extra)


def _pairs(name: str, table: sa.Table, *, deleted_too: bool) -> Callable[[Tx, Sequence[Row], list[str]], None]:
    statement = sa.select(table.c.instance_uuid, table.c.key, table.c.value)
    if not deleted_too:
        statement = statement.where(table.c.deleted == 0)

    def load(tx: Tx, chunk: Sequence[Row], uuids: list[str]) -> None:
        pairs: dict[str, dict[str, str]] = {uuid: {} for uuid in uuids}
        for uuid, key, value in tx.execute(statement.where(table.c.instance_uuid.in_(uuids))):
            pairs[uuid][key] = value
        for row in chunk:
            row[name] = pairs[row["uuid"]]

    return load


def _tags(tx: Tx, chunk: Sequence[Row], uuids: list[str]) -> None:
    statement = sa.select(TAGS.c.resource_id, TAGS.c.tag).where(TAGS.c.resource_id.in_(uuids)).order_by(TAGS.c.tag)
    tags = _grouped(tx.execute(statement))
    for row in chunk:
        row["tags"] = tags.get(row["uuid"], []) if not row.get("deleted") else []


def _security_groups(tx: Tx, chunk: Sequence[Row], uuids: list[str]) -> None:
    link, group = SECURITY_GROUP_INSTANCE_ASSOCIATION, SECURITY_GROUPS
    statement = (
        sa.select(link.c.instance_uuid, group.c.name)
        .join_from(link, group, link.c.security_group_id == group.c.id)
        .where(link.c.instance_uuid.in_(uuids), link.c.deleted == 0, group.c.deleted == 0)
        .order_by(group.c.name)
    )
    groups = _grouped(tx.execute(statement))
    for row in chunk:
        row["security_groups"] = groups.get(row["uuid"], [])


def _fault(tx: Tx, chunk: Sequence[Row], uuids: list[str]) -> None:
    table = INSTANCE_FAULTS
    newest = (
        sa.select(sa.func.max(table.c.id).label("id"))
        .where(table.c.instance_uuid.in_(uuids), table.c.deleted == 0)
        .group_by(table.c.instance_uuid)
        .subquery()
    )
    statement = sa.select(table).join_from(table, newest, table.c.id == newest.c.id)
    faults = {row["instance_uuid"]: row for row in query.rows(tx, statement)}
    for row in chunk:
        row["fault"] = faults.get(row["uuid"])


def _info_cache(tx: Tx, chunk: Sequence[Row], uuids: list[str]) -> None:
    table = INSTANCE_INFO_CACHES
    found = query.rows(tx, sa.select(table).where(table.c.instance_uuid.in_(uuids)))
    caches = {row["instance_uuid"]: row for row in found}
    for row in chunk:
        row["info_cache"] = caches.get(row["uuid"])


def _extra(tx: Tx, chunk: Sequence[Row], uuids: list[str], names: Collection[str]) -> None:
    table = INSTANCE_EXTRA
    wanted = sorted(names)
    statement = sa.select(table.c.instance_uuid, *query.columns(table, wanted)).where(table.c.instance_uuid.in_(uuids))
    found = {uuid: dict(zip(wanted, texts, strict=True)) for uuid, *texts in tx.execute(statement)}
    for row in chunk:
        row["extra"] = found.get(row["uuid"]) or dict.fromkeys(wanted)


def _children(name: str, table: sa.Table) -> Callable[[Tx, Sequence[Row], list[str]], None]:
    statement = sa.select(table).where(table.c.deleted == 0).order_by(table.c.id)

    def load(tx: Tx, chunk: Sequence[Row], uuids: list[str]) -> None:
        children: dict[str, list[Row]] = {uuid: [] for uuid in uuids}
        for child in query.rows(tx, statement.where(table.c.instance_uuid.in_(uuids))):
            children[child["instance_uuid"]].append(child)
        for row in chunk:
            row[name] = children[row["uuid"]]

    return load


def _volumes(tx: Tx, chunk: Sequence[Row], uuids: list[str]) -> None:
    table = BLOCK_DEVICE_MAPPING
    statement = (
        sa.select(table.c.instance_uuid, table.c.volume_id, table.c.delete_on_termination)
        .where(table.c.instance_uuid.in_(uuids), table.c.deleted == 0, table.c.volume_id.is_not(None))
        .order_by(table.c.id)
    )
    volumes: dict[str, list[Row]] = {uuid: [] for uuid in uuids}
    for found in query.rows(tx, statement):
        volumes[found["instance_uuid"]].append(found)
    for row in chunk:
        row["volumes"] = volumes[row["uuid"]]


def _services(tx: Tx, chunk: Sequence[Row], _uuids: list[str]) -> None:
    hosts = {row["host"] for row in chunk if row["host"] is not None}
    table = SERVICES
    where = (table.c.host.in_(hosts), table.c.binary == "nova-compute", table.c.deleted == 0)
    services = {row["host"]: row for row in query.rows(tx, sa.select(table).where(*where))}
    for row in chunk:
        alive = services.get(row["host"]) if not row.get("deleted") else None
        row["services"] = [] if alive is None else [alive]


def _grouped(found: Iterable[Any]) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = collections.defaultdict(list)
    for key, value in found:
        groups[key].append(value)
    return groups


_LOADERS: dict[str, Callable[[Tx, Sequence[Row], list[str]], None]] = {
    "block_device_mappings": _children("block_device_mappings", BLOCK_DEVICE_MAPPING),
    "fault": _fault,
    "info_cache": _info_cache,
    "metadata": _pairs("metadata", INSTANCE_METADATA, deleted_too=False),
    "pci_devices": _children("pci_devices", PCI_DEVICES),
    "security_groups": _security_groups,
    "services": _services,
    "system_metadata": _pairs("system_metadata", INSTANCE_SYSTEM_METADATA, deleted_too=True),
    "tags": _tags,
    "volumes": _volumes,
}
