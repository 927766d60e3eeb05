"""What hangs on instances, read for a whole page at once: one statement per part, however long the page.

Each part puts one key into every row:

    metadata, system_metadata   dict of texts
    locked_reason               system_metadata with that key only
    tags, security_groups       sorted list of names
    fault                       the newest fault as a row, or None
    info_cache                  the row of the info cache (`network_info` is JSON text), or None
    pci_devices, services       list of rows
    block_device_mappings       list of rows
    volumes                     list of rows (volume_id, delete_on_termination)
    extra                       dict of columns of instance_extra (JSON texts); asked for by the columns' names
"""

from __future__ import annotations

import functools
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

Loader = Callable[[Tx, Sequence[Row], list[str]], None]
"""Reads one part of the instances with these uuids and puts it into their rows."""

_UUIDS: sa.BindParameter[Any] = sa.bindparam("uuids", expanding=True)

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


def _pairs(name: str, table: sa.Table, *, deleted_too: bool) -> Loader:
    statement = sa.select(table.c.instance_uuid, table.c.key, table.c.value).where(table.c.instance_uuid.in_(_UUIDS))
    if not deleted_too:
        statement = statement.where(table.c.deleted == 0)

    def load(tx: Tx, chunk: Sequence[Row], uuids: list[str]) -> None:
        pairs: dict[str, dict[str, str]] = {uuid: {} for uuid in uuids}
        for uuid, key, value in tx.execute(statement, {"uuids": uuids}).all():
            pairs[uuid][key] = value
        for row in chunk:
            row[name] = pairs[row["uuid"]]

    return load


_REASONS = sa.select(INSTANCE_SYSTEM_METADATA.c.instance_uuid, INSTANCE_SYSTEM_METADATA.c.value).where(
    INSTANCE_SYSTEM_METADATA.c.instance_uuid.in_(_UUIDS), INSTANCE_SYSTEM_METADATA.c.key == "locked_reason"
)


def _locked_reason(tx: Tx, chunk: Sequence[Row], uuids: list[str]) -> None:
    reasons = {uuid: value for uuid, value in tx.execute(_REASONS, {"uuids": uuids})}  # noqa: C416
    for row in chunk:
        reason = reasons.get(row["uuid"])
        row["system_metadata"] = {} if reason is None else {"locked_reason": reason}


def _names(name: str, statement: sa.Select[Any], *, of_the_living: bool) -> Loader:
    """A list of names per instance; the statement gives (instance uuid, name)."""

    def load(tx: Tx, chunk: Sequence[Row], uuids: list[str]) -> None:
        names: dict[str, list[str]] = {uuid: [] for uuid in uuids}
        for uuid, one in tx.execute(statement, {"uuids": uuids}).all():
            names[uuid].append(one)
        for row in chunk:
            row[name] = [] if of_the_living and row.get("deleted") else names[row["uuid"]]

    return load


def _single(name: str, statement: sa.Select[Any]) -> Loader:
    """At most one row per instance; the statement gives its columns, `instance_uuid` among them."""

    def load(tx: Tx, chunk: Sequence[Row], uuids: list[str]) -> None:
        found = {row["instance_uuid"]: row for row in query.rows(tx, statement, {"uuids": uuids})}
        for row in chunk:
            row[name] = found.get(row["uuid"])

    return load


def _children(name: str, statement: sa.Select[Any]) -> Loader:
    """Any number of rows per instance; the statement gives their columns, `instance_uuid` among them."""

    def load(tx: Tx, chunk: Sequence[Row], uuids: list[str]) -> None:
        children: dict[str, list[Row]] = {uuid: [] for uuid in uuids}
        for child in query.rows(tx, statement, {"uuids": uuids}):
            children[child["instance_uuid"]].append(child)
        for row in chunk:
            row[name] = children[row["uuid"]]

    return load


def _living(table: sa.Table, *columns: sa.Column[Any]) -> sa.Select[Any]:
    statement = sa.select(*(columns or table.columns)).where(table.c.instance_uuid.in_(_UUIDS), table.c.deleted == 0)
    return statement.order_by(table.c.id)


def _security_groups() -> sa.Select[Any]:
    link, group = SECURITY_GROUP_INSTANCE_ASSOCIATION, SECURITY_GROUPS
    return (
        sa.select(link.c.instance_uuid, group.c.name)
        .join_from(link, group, link.c.security_group_id == group.c.id)
        .where(link.c.instance_uuid.in_(_UUIDS), link.c.deleted == 0, group.c.deleted == 0)
        .order_by(group.c.name)
    )


def _newest_faults() -> sa.Select[Any]:
    table = INSTANCE_FAULTS
    newest = (
        sa.select(sa.func.max(table.c.id).label("id"))
        .where(table.c.instance_uuid.in_(_UUIDS), table.c.deleted == 0)
        .group_by(table.c.instance_uuid)
        .subquery()
    )
    return sa.select(table).join_from(table, newest, table.c.id == newest.c.id)


@functools.lru_cache(maxsize=64)
def _extra_statement(names: tuple[str, ...]) -> sa.Select[Any]:
    table = INSTANCE_EXTRA
    columns = query.columns(table, names)
    return sa.select(table.c.instance_uuid, *columns).where(table.c.instance_uuid.in_(_UUIDS))


def _extra(tx: Tx, chunk: Sequence[Row], uuids: list[str], names: Collection[str]) -> None:
    wanted = tuple(sorted(names))
    found = tx.execute(_extra_statement(wanted), {"uuids": uuids}).all()
    texts = {row[0]: dict(zip(wanted, row[1:], strict=True)) for row in found}
    for row in chunk:
        row["extra"] = texts.get(row["uuid"]) or dict.fromkeys(wanted)


def _services(tx: Tx, chunk: Sequence[Row], _uuids: list[str]) -> None:
    hosts = {row["host"] for row in chunk if row["host"] is not None}
    services = {row["host"]: row for row in query.rows(tx, _COMPUTE_SERVICES, {"hosts": list(hosts)})}
    for row in chunk:
        alive = services.get(row["host"]) if not row.get("deleted") else None
        row["services"] = [] if alive is None else [alive]


_COMPUTE_SERVICES = sa.select(SERVICES).where(
    SERVICES.c.host.in_(sa.bindparam("hosts", expanding=True)),
    SERVICES.c.binary == "nova-compute",
    SERVICES.c.deleted == 0,
)
_TAGS = sa.select(TAGS.c.resource_id, TAGS.c.tag).where(TAGS.c.resource_id.in_(_UUIDS)).order_by(TAGS.c.tag)
_INFO_CACHES = sa.select(INSTANCE_INFO_CACHES).where(INSTANCE_INFO_CACHES.c.instance_uuid.in_(_UUIDS))
_DEVICES = BLOCK_DEVICE_MAPPING.c
_VOLUMES = _living(
    BLOCK_DEVICE_MAPPING, _DEVICES.instance_uuid, _DEVICES.volume_id, _DEVICES.delete_on_termination
).where(_DEVICES.volume_id.is_not(None))

_LOADERS: dict[str, Loader] = {
    "block_device_mappings": _children("block_device_mappings", _living(BLOCK_DEVICE_MAPPING)),
    "fault": _single("fault", _newest_faults()),
    "info_cache": _single("info_cache", _INFO_CACHES),
    "metadata": _pairs("metadata", INSTANCE_METADATA, deleted_too=False),
    "pci_devices": _children("pci_devices", _living(PCI_DEVICES)),
    "security_groups": _names("security_groups", _security_groups(), of_the_living=False),
    "services": _services,
    "locked_reason": _locked_reason,
    "system_metadata": _pairs("system_metadata", INSTANCE_SYSTEM_METADATA, deleted_too=True),
    "tags": _names("tags", _TAGS, of_the_living=True),
    "volumes": _children("volumes", _VOLUMES),
}
