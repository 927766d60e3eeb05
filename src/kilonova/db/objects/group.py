"""Server groups."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

import sqlalchemy as sa

from kilonova.base import ids as new_ids
from kilonova.contract import exceptions, objects
from kilonova.db import exact, query
from kilonova.db.api import instance_groups
from kilonova.db.api.tables import INSTANCE_GROUP_MEMBER, INSTANCE_GROUP_POLICY, INSTANCE_GROUPS, INSTANCE_MAPPINGS
from kilonova.db.objects import hydrate
from kilonova.db.objects.hydrate import Row
from kilonova.db.outcomes import DuplicateError


def load_many(tx: sa.Connection, rows: list[Row]) -> list[objects.InstanceGroup]:
    """Groups with policy and members that have not been deleted; two more statements however many."""
    ids = [row["id"] for row in rows]
    policy_rows = tx.execute(sa.select(INSTANCE_GROUP_POLICY).where(INSTANCE_GROUP_POLICY.c.group_id.in_(ids)))
    policies = {row["group_id"]: row for row in policy_rows.mappings()}
    members = _members(tx, ids)
    found = []
    for row in rows:
        policy = policies.get(row["id"])
        rules = json.loads(policy["rules"]) if policy and policy["rules"] else {}
        values = _values(row, policy["policy"] if policy else None, rules, members.get(row["id"], []))
        found.append(hydrate.fill(objects.InstanceGroup(), {**values, "hosts": None}))
    return found


def _values(row: Row, policy: str | None, rules: Mapping[str, Any], members: list[str]) -> dict[str, Any]:
    return {
        **row,
        "deleted": False,
        "deleted_at": None,
        "policies": [policy] if policy else [],
        "policy": policy,
        "_rules": {key: str(value) for key, value in rules.items()},
        "members": members,
    }


def _members(tx: sa.Connection, ids: list[int]) -> dict[int, list[str]]:
    member = INSTANCE_GROUP_MEMBER
    living = sa.select(INSTANCE_MAPPINGS.c.instance_uuid).where(
        INSTANCE_MAPPINGS.c.instance_uuid == member.c.instance_uuid,
        INSTANCE_MAPPINGS.c.queued_for_delete.is_not(True),
    )
    query = sa.select(member).where(member.c.group_id.in_(ids), living.exists()).order_by(member.c.id)
    found: dict[int, list[str]] = {}
    for row in tx.execute(query).mappings():
        found.setdefault(row["group_id"], []).append(row["instance_uuid"])
    return found


def _own(ctxt: Any) -> list[sa.ColumnElement[bool]]:
    """Of those who are no administrators: their project's groups only."""
    return [] if ctxt.is_admin else [INSTANCE_GROUPS.c.project_id == ctxt.project_id]


def _one(tx: sa.Connection, ctxt: Any, *conditions: sa.ColumnElement[bool]) -> objects.InstanceGroup | None:
    rows = list(tx.execute(sa.select(INSTANCE_GROUPS).where(*conditions, *_own(ctxt))).mappings())
    return load_many(tx, rows)[0] if rows else None


def get_by_uuid(tx: sa.Connection, ctxt: Any, uuid: str | None) -> objects.InstanceGroup:
    """Raises InstanceGroupNotFound."""
    found = _one(tx, ctxt, INSTANCE_GROUPS.c.uuid == uuid)
    if found is None:
        raise exceptions.InstanceGroupNotFound(group_uuid=uuid)
    return found


def get_by_name(tx: sa.Connection, ctxt: Any, name: str) -> objects.InstanceGroup:
    """Raises InstanceGroupNotFound."""
    found = _one(tx, ctxt, exact.equal(tx.dialect.name, INSTANCE_GROUPS.c.name, name))
    if found is None:
        raise exceptions.InstanceGroupNotFound(group_uuid=name)
    return found


def get_by_instance_uuid(tx: sa.Connection, ctxt: Any, instance_uuid: str) -> objects.InstanceGroup:
    """Raises InstanceGroupNotFound."""
    member = INSTANCE_GROUP_MEMBER
    of = sa.select(member.c.group_id).where(member.c.instance_uuid == instance_uuid)
    found = _one(tx, ctxt, INSTANCE_GROUPS.c.id.in_(of))
    if found is None:
        raise exceptions.InstanceGroupNotFound(group_uuid="")
    return found


def add_members(tx: sa.Connection, ctxt: Any, group_uuid: str, instance_uuids: Collection[str]) -> list[str]:
    """Add those that are not in yet; returns all members. Raises InstanceGroupNotFound."""
    found = get_by_uuid(tx, ctxt, group_uuid)
    member = INSTANCE_GROUP_MEMBER
    present = set(tx.execute(sa.select(member.c.instance_uuid).where(member.c.group_id == found.id)).scalars())
    new = [uuid for uuid in instance_uuids if uuid not in present]
    if new:
        tx.execute(sa.insert(member), [{"group_id": found.id, "instance_uuid": uuid} for uuid in new])
    return [*found.members, *new]


def create(tx: sa.Connection, ctxt: Any, group: objects.InstanceGroup) -> None:
    """With the policy, its rules and the members that are set. Raises InstanceGroupIdExists."""
    if group.obj_attr_is_set("id"):
        raise exceptions.ObjectActionError(action="create", reason="already created")
    values = {"uuid": new_ids.new_uuid(), **hydrate.changed_columns(group, INSTANCE_GROUPS)}
    former = group.get("policies") or []
    policy = former[0] if former else group.get("policy")
    rules = {} if former else dict(group.get("_rules") or {})
    members = list(dict.fromkeys(group.get("members") or ()))
    try:
        row = query.insert(tx, INSTANCE_GROUPS, values)
    except DuplicateError as exc:
        raise exceptions.InstanceGroupIdExists(group_uuid=values["uuid"]) from exc
    if policy:
        text = None if former else json.dumps(rules)
        tx.execute(sa.insert(INSTANCE_GROUP_POLICY).values(group_id=row["id"], policy=policy, rules=text))
    instance_groups.instance_group_members_add(tx, row["id"], members)
    hydrate.fill(group, _values(row, policy, rules, members))


FIXED = ("hosts", "policies", "policy", "_rules")
"""What a group has from its making, or from its members."""


def save(tx: sa.Connection, ctxt: Any, group: objects.InstanceGroup) -> None:
    """Write the group's own columns and add members. Raises InstanceGroupSaveException, InstanceGroupNotFound."""
    changed = group.obj_what_changed()
    for name in FIXED:
        if name in changed:
            raise exceptions.InstanceGroupSaveException(field=name)
    if not changed:
        return
    found = get_by_uuid(tx, ctxt, group.uuid)
    if values := hydrate.changed_columns(group, INSTANCE_GROUPS, skip={"id"}):
        tx.execute(sa.update(INSTANCE_GROUPS).where(INSTANCE_GROUPS.c.id == found.id).values(**values))
    instance_groups.instance_group_members_add(tx, found.id, (group.members or ()) if "members" in changed else ())
    row = instance_groups.instance_group_get(tx, group.uuid)
    assert row is not None
    hydrate.fill(group, _values(row, row["policy"], row["rules"], row["members"]))


def destroy(tx: sa.Connection, ctxt: Any, group: objects.InstanceGroup) -> None:
    """With its policy and memberships. Raises InstanceGroupNotFound."""
    get_by_uuid(tx, ctxt, group.uuid)
    instance_groups.instance_group_delete(tx, group.uuid)
    group.obj_reset_changes()


def refresh(tx: sa.Connection, ctxt: Any, group: objects.InstanceGroup) -> None:
    """Raises InstanceGroupNotFound."""
    fresh = get_by_uuid(tx, ctxt, group.uuid)
    for name in type(group).fields:
        if group.obj_attr_is_set(name) and fresh.obj_attr_is_set(name):
            setattr(group, name, getattr(fresh, name))
    group.obj_reset_changes()


def get_all(tx: sa.Connection, ctxt: Any) -> objects.InstanceGroupList:
    return _list(tx, *_own(ctxt))


def get_by_project_id(tx: sa.Connection, ctxt: Any, project_id: str) -> objects.InstanceGroupList:
    return _list(tx, INSTANCE_GROUPS.c.project_id == project_id, *_own(ctxt))


def _list(tx: sa.Connection, *conditions: sa.ColumnElement[bool]) -> objects.InstanceGroupList:
    rows = list(tx.execute(sa.select(INSTANCE_GROUPS).where(*conditions).order_by(INSTANCE_GROUPS.c.id)).mappings())
    return objects.InstanceGroupList(objects=load_many(tx, rows))


def get_counts(tx: sa.Connection, ctxt: Any, project_id: str, user_id: str | None = None) -> dict[str, Any]:
    """Server groups of a project, and of a user in it under `user`."""
    counted = instance_groups.instance_group_count(tx, project_id, user_id)
    return {scope: {"server_groups": number} for scope, number in counted.items()}
