"""Security groups that a cell database still has from before Neutron; servers of today have theirs in Neutron."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from kilonova.contract import exceptions, objects
from kilonova.db.cell.tables import INSTANCES, SECURITY_GROUP_INSTANCE_ASSOCIATION, SECURITY_GROUPS
from kilonova.db.objects import hydrate

TABLE = SECURITY_GROUPS
MEMBERS = SECURITY_GROUP_INSTANCE_ASSOCIATION


def _list(tx: sa.Connection, *conditions: sa.ColumnElement[bool]) -> objects.SecurityGroupList:
    rows = tx.execute(hydrate.select_alive(TABLE, *conditions).order_by(TABLE.c.id)).mappings()
    return objects.SecurityGroupList(objects=[hydrate.fill(objects.SecurityGroup(), row) for row in rows])


def get(tx: sa.Connection, ctxt: Any, secgroup_id: int) -> objects.SecurityGroup:
    """Raises SecurityGroupNotFound."""
    found = _list(tx, TABLE.c.id == secgroup_id).objects
    if not found:
        raise exceptions.SecurityGroupNotFound(security_group_id=secgroup_id)
    return found[0]


def get_by_name(tx: sa.Connection, ctxt: Any, project_id: str, group_name: str) -> objects.SecurityGroup:
    """Raises SecurityGroupNotFoundForProject."""
    found = _list(tx, TABLE.c.project_id == project_id, TABLE.c.name == group_name).objects
    if not found:
        raise exceptions.SecurityGroupNotFoundForProject(project_id=project_id, security_group_id=group_name)
    return found[0]


def in_use(tx: sa.Connection, ctxt: Any, group: objects.SecurityGroup) -> bool:
    """Whether a living server is in it."""
    living = sa.select(INSTANCES.c.uuid).where(INSTANCES.c.deleted == 0)
    query = hydrate.select_alive(
        MEMBERS, MEMBERS.c.security_group_id == group.id, MEMBERS.c.instance_uuid.in_(living)
    ).limit(1)
    return tx.execute(query).first() is not None


def save(tx: sa.Connection, ctxt: Any, group: objects.SecurityGroup) -> None:
    """Raises SecurityGroupNotFound."""
    if values := hydrate.changed_columns(group, TABLE, skip={"id"}):
        tx.execute(sa.update(TABLE).where(TABLE.c.id == group.id, TABLE.c.deleted == 0).values(**values))
    refresh(tx, ctxt, group)


def refresh(tx: sa.Connection, ctxt: Any, group: objects.SecurityGroup) -> None:
    """Raises SecurityGroupNotFound."""
    fresh = get(tx, ctxt, group.id)
    for name in type(group).fields:
        if fresh.obj_attr_is_set(name):
            setattr(group, name, getattr(fresh, name))
    group.obj_reset_changes()


def get_all(tx: sa.Connection, ctxt: Any) -> objects.SecurityGroupList:
    return _list(tx)


def get_by_project(tx: sa.Connection, ctxt: Any, project_id: str) -> objects.SecurityGroupList:
    return _list(tx, TABLE.c.project_id == project_id)


def get_by_instance(tx: sa.Connection, ctxt: Any, instance: objects.Instance) -> objects.SecurityGroupList:
    of = sa.select(MEMBERS.c.security_group_id).where(MEMBERS.c.instance_uuid == instance.uuid, MEMBERS.c.deleted == 0)
    return _list(tx, TABLE.c.id.in_(of))


def get_counts(tx: sa.Connection, ctxt: Any, project_id: str, user_id: str | None = None) -> dict[str, Any]:
    """`{"project": {"security_groups": n}}`, and the user's share of them under `user`."""
    counts: dict[str, Any] = {"project": {"security_groups": _count(tx, [TABLE.c.project_id == project_id])}}
    if user_id:
        mine = [TABLE.c.project_id == project_id, TABLE.c.user_id == user_id]
        counts["user"] = {"security_groups": _count(tx, mine)}
    return counts


def _count(tx: sa.Connection, conditions: Sequence[sa.ColumnElement[bool]]) -> int:
    query = sa.select(sa.func.count()).select_from(TABLE).where(TABLE.c.deleted == 0, *conditions)
    return int(tx.execute(query).scalar_one())
