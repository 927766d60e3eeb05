"""Shared file systems attached to servers."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import sqlalchemy as sa

from kilonova.contract import exceptions, objects
from kilonova.db.cell.tables import INSTANCES, MIGRATIONS
from kilonova.db.cell.tables import SHARE_MAPPING as TABLE
from kilonova.db.objects import hydrate
from kilonova.db.objects.hydrate import Row

NOT_STORED = {"access_to", "access_type", "access_key"}
ENDED_MOVES = ("confirmed", "reverted", "error")
"""States of a migration after which a host may still have access to a share that it no longer needs."""


def _filled(share: objects.ShareMapping, row: Row) -> objects.ShareMapping:
    return hydrate.fill(share, row, skip=NOT_STORED)


def _list(tx: sa.Connection, *conditions: sa.ColumnElement[bool]) -> objects.ShareMappingList:
    rows = tx.execute(sa.select(TABLE).where(*conditions).order_by(TABLE.c.id)).mappings()
    return objects.ShareMappingList(objects=[_filled(objects.ShareMapping(), row) for row in rows])


def _of(share: objects.ShareMapping) -> list[sa.ColumnElement[bool]]:
    return [TABLE.c.instance_uuid == share.instance_uuid, TABLE.c.share_id == share.share_id]


def save(tx: sa.Connection, ctxt: Any, share: objects.ShareMapping) -> None:
    """Write the mapping, new or known."""
    names = ("status", "tag", "export_location", "share_proto")
    values = {name: getattr(share, name) for name in names}
    if not tx.execute(sa.update(TABLE).where(*_of(share)).values(**values)).rowcount:
        keys = {name: getattr(share, name) for name in ("uuid", "instance_uuid", "share_id")}
        hydrate.insert(tx, TABLE, keys | values)
    _filled(share, tx.execute(sa.select(TABLE).where(*_of(share))).mappings().one())


def delete(tx: sa.Connection, ctxt: Any, share: objects.ShareMapping) -> None:
    tx.execute(sa.delete(TABLE).where(*_of(share)))


def get_by_instance_uuid_and_share_id(
    tx: sa.Connection, ctxt: Any, instance_uuid: str, share_id: str
) -> objects.ShareMapping:
    """Raises ShareNotFound."""
    found = _list(tx, TABLE.c.instance_uuid == instance_uuid, TABLE.c.share_id == share_id).objects
    if not found:
        raise exceptions.ShareNotFound(share_id=share_id)
    return found[0]


def get_by_instance_uuid(tx: sa.Connection, ctxt: Any, instance_uuid: str) -> objects.ShareMappingList:
    return _list(tx, TABLE.c.instance_uuid == instance_uuid)


def get_by_share_id(tx: sa.Connection, ctxt: Any, share_id: str) -> objects.ShareMappingList:
    return _list(tx, TABLE.c.share_id == share_id)


def get_by_host_for_reconcile(tx: sa.Connection, ctxt: Any, host: str) -> objects.ShareMappingList:
    """Of servers on the host, and of those that left it or came back from it: their access may be stale there."""
    here = sa.select(INSTANCES.c.uuid).where(INSTANCES.c.host == host, INSTANCES.c.deleted == 0)
    moved = sa.select(MIGRATIONS.c.instance_uuid).where(
        MIGRATIONS.c.deleted == 0,
        MIGRATIONS.c.status.in_(ENDED_MOVES),
        sa.or_(MIGRATIONS.c.source_compute == host, MIGRATIONS.c.dest_compute == host),
    )
    uuids: Collection[str] = set(tx.execute(sa.union(here, moved)).scalars())
    return _list(tx, TABLE.c.instance_uuid.in_(uuids))
