"""Numbers and spans over many instances: usage of a project, activity in a time window."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import sqlalchemy as sa

from kilonova.base import clock
from kilonova.contract import objects, states
from kilonova.db.cell.tables import INSTANCES as TABLE
from kilonova.db.objects import instance
from kilonova.db.query import slices


def get_counts(tx: sa.Connection, ctxt: Any, project_id: str, user_id: str | None = None) -> dict[str, dict[str, int]]:
    """Instances, cores and MiB of memory of a project, and of a user in it under `user`."""
    counts = {"project": _usage(tx, TABLE.c.project_id == project_id)}
    if user_id:
        counts["user"] = _usage(tx, TABLE.c.project_id == project_id, TABLE.c.user_id == user_id)
    return counts


def _usage(tx: sa.Connection, *conditions: sa.ColumnElement[bool]) -> dict[str, int]:
    query = sa.select(sa.func.count(TABLE.c.id), sa.func.sum(TABLE.c.vcpus), sa.func.sum(TABLE.c.memory_mb)).where(
        TABLE.c.deleted == 0,
        sa.or_(TABLE.c.vm_state != states.VM.SOFT_DELETED, TABLE.c.vm_state.is_(None)),
        TABLE.c.hidden.is_not(True),
        *conditions,
    )
    row = tx.execute(query).one()
    return {name: int(number or 0) for name, number in zip(("instances", "cores", "ram"), row, strict=True)}


def get_active_by_window(
    tx: sa.Connection,
    ctxt: Any,
    begin: str,
    end: str | None = None,
    project_id: str | None = None,
    host: str | None = None,
    expected_attrs: Collection[str] | None = None,
    use_slave: bool = False,
    limit: int | None = None,
    marker: str | None = None,
) -> objects.InstanceList:
    """Instances, deleted ones too, that existed at any moment between two times (ISO 8601 text)."""
    where = [sa.or_(TABLE.c.terminated_at.is_(None), TABLE.c.terminated_at > clock.naive(clock.parse(begin)))]
    if end is not None:
        where.append(TABLE.c.launched_at < clock.naive(clock.parse(end)))
    if project_id is not None:
        where.append(TABLE.c.project_id == project_id)
    if host is not None:
        where.append(TABLE.c.host == host)
    if marker is not None:
        where.append(TABLE.c.id > sa.select(TABLE.c.id).where(TABLE.c.uuid == marker).scalar_subquery())
    rows = list(tx.execute(sa.select(TABLE).where(*where).order_by(TABLE.c.id).limit(limit)).mappings())
    wanted = instance.DEFAULT if expected_attrs is None else expected_attrs
    return objects.InstanceList(objects=instance.load_many(tx, rows, wanted))


def hosts_of_group(
    tx: sa.Connection, ctxt: Any, group: objects.InstanceGroup, exclude: Collection[str] | None = None
) -> list[str]:
    """Hosts on which members of the group live, except those of the members `exclude`."""
    members = set(group.members) - set(exclude or ())
    query = sa.select(TABLE.c.host).where(TABLE.c.deleted == 0, TABLE.c.host.is_not(None))
    return sorted(
        {host for part in slices(members) for host in tx.execute(query.where(TABLE.c.uuid.in_(part))).scalars()}
    )


def members_by_user(tx: sa.Connection, ctxt: Any, group: objects.InstanceGroup, user_id: str) -> int:
    """How many living members of the group belong to a user."""
    query = sa.select(sa.func.count()).select_from(TABLE).where(TABLE.c.deleted == 0, TABLE.c.user_id == user_id)
    parts = (query.where(TABLE.c.uuid.in_(part)) for part in slices(group.members or ()))
    return sum(int(tx.execute(part).scalar_one()) for part in parts)
