"""What the record of a cell says about servers whose traces were found in other services, and about stuck tasks."""

from __future__ import annotations

import datetime
from collections.abc import Collection

import sqlalchemy as sa

from kilonova.contract.states import VM
from kilonova.db import query
from kilonova.db.cell.tables import BLOCK_DEVICE_MAPPING, COMPUTE_NODES, INSTANCE_ACTIONS, INSTANCES, MIGRATIONS
from kilonova.db.engine import Tx
from kilonova.db.query import Row

_I, _N, _M = INSTANCES.c, COMPUTE_NODES.c, MIGRATIONS.c
PAGE = 500
"""Rows that are looked at at a time."""

MIGRATION_ENDED = ("confirmed", "reverted", "failed", "completed", "cancelled", "done", "error")
"""Statuses of migrations after which nothing is on its way any more."""

_SERVER = (
    _I.id, _I.uuid, _I.deleted, _I.vm_state, _I.task_state, _I.host, _I.node, _I.project_id, _I.user_id,
    _I.created_at, _I.updated_at, _I.launched_at,
)  # fmt: skip


def server_traces(tx: Tx, uuids: Collection[str]) -> list[Row]:
    """The states of these servers, deleted ones too."""
    return query.rows(tx, sa.select(*_SERVER).where(_I.uuid.in_(list(uuids))))


def migrations(tx: Tx, uuids: Collection[str]) -> dict[str, bool]:
    """Which of these are migrations, and whether the server of each lives: they hold what it has on its other host."""
    lives = sa.select(_I.id).where(_I.uuid == _M.instance_uuid, _I.deleted == 0).exists()
    rows = query.rows(tx, sa.select(_M.uuid, lives.label("lives")).where(_M.uuid.in_(list(uuids))))
    return {row["uuid"]: bool(row["lives"]) for row in rows}


def devices(tx: Tx, uuids: Collection[str]) -> list[Row]:
    """`uuid`, `instance_uuid` and `volume_id` of these block devices, those of deleted servers too."""
    row = BLOCK_DEVICE_MAPPING.c
    columns = (row.uuid, row.instance_uuid, row.volume_id)
    return query.rows(tx, sa.select(*columns).where(row.uuid.in_(list(uuids)), row.instance_uuid.is_not(None)))


def volumes_of_devices(tx: Tx, volume_ids: Collection[str]) -> set[str]:
    """Which of these volumes are, or were, a block device of any server."""
    row = BLOCK_DEVICE_MAPPING.c
    parts = (sa.select(row.volume_id).where(row.volume_id.in_(part)) for part in query.slices(volume_ids))
    return {volume for part in parts for volume in query.values(tx, part)}


def node_uuids_after(tx: Tx, uuid: str | None, limit: int) -> list[str]:
    """The next nodes in the order of their uuids, which are those of their root providers; None: the first ones.

    Those of removed hosts too, while the record is kept.
    """
    statement = sa.select(_N.uuid).where(_N.uuid.is_not(None) if uuid is None else _N.uuid > uuid)
    return query.values(tx, statement.order_by(_N.uuid).limit(limit))


def nodes(tx: Tx) -> list[Row]:
    """`uuid`, `host`, `hypervisor_hostname` and `deleted` of every node, those of removed hosts too."""
    columns = (_N.uuid, _N.host, _N.hypervisor_hostname, _N.deleted)
    return query.rows(tx, sa.select(*columns).where(_N.uuid.is_not(None)))


def open_migrations(tx: Tx, uuids: Collection[str]) -> list[Row]:
    """`uuid` and `instance_uuid` of the migrations going on that are, or move, one of these."""
    going_on = sa.or_(_M.status.is_(None), _M.status.not_in(MIGRATION_ENDED))
    wanted = sa.or_(_M.uuid.in_(list(uuids)), _M.instance_uuid.in_(list(uuids)))
    return query.rows(tx, sa.select(_M.uuid, _M.instance_uuid).where(_M.deleted == 0, going_on, wanted))


def servers_in_task(
    tx: Tx, tasks: Collection[str], unchanged_since: datetime.datetime, *, after: int = 0, limit: int = PAGE
) -> list[Row]:
    """A page, by number, of the living servers that a task has held since before a time (naive UTC)."""
    return _unchanged(tx, _I.task_state.in_(list(tasks)), unchanged_since, after, limit)


def servers_in_state(
    tx: Tx, vm_state: str, unchanged_since: datetime.datetime, *, after: int = 0, limit: int = PAGE
) -> list[Row]:
    """A page, by number, of the living servers in a state, unchanged since before a time (naive UTC)."""
    return _unchanged(tx, _I.vm_state == vm_state, unchanged_since, after, limit)


def _unchanged(
    tx: Tx, condition: sa.ColumnElement[bool], since: datetime.datetime, after: int, limit: int
) -> list[Row]:
    changed = sa.func.coalesce(_I.updated_at, _I.created_at)
    held = (_I.deleted == 0, condition, changed < since, _I.id > after)
    return query.rows(tx, sa.select(*_SERVER).where(*held).order_by(_I.id).limit(limit))


def never_ran(
    tx: Tx,
    unchanged_since: datetime.datetime,
    *,
    after: str | None = None,
    among: Collection[str] | None = None,
    limit: int | None = None,
) -> list[Row]:
    """Living servers in BUILD or ERROR that no host has or had, unchanged since before a time (naive UTC), by uuid.

    `after`: behind this uuid. Hidden ones, halves of a move between cells, are left out.
    """
    changed = sa.func.coalesce(_I.updated_at, _I.created_at)
    where = [
        _I.deleted == 0, _I.host.is_(None), _I.launched_at.is_(None), _I.hidden.is_not(True),
        _I.vm_state.in_((VM.BUILDING, VM.ERROR)), changed < unchanged_since,
    ]  # fmt: skip
    if after is not None:
        where.append(_I.uuid > after)
    if among is not None:
        where.append(_I.uuid.in_(list(among)))
    return query.rows(tx, sa.select(*_SERVER).where(*where).order_by(_I.uuid).limit(limit))


def last_request(tx: Tx, uuid: str) -> str | None:
    """The request id of the newest action on a server."""
    actions = INSTANCE_ACTIONS.c
    newest = sa.select(actions.request_id).where(actions.instance_uuid == uuid, actions.deleted == 0)
    found: str | None = tx.execute(newest.order_by(actions.id.desc()).limit(1)).scalar()
    return found
