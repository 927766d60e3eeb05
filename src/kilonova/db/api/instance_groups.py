"""Server groups. Rows carry `members` (instance uuids), `policy` and `rules` (dict)."""

from __future__ import annotations

import collections
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from kilonova.base import ids
from kilonova.db import query
from kilonova.db.api.tables import INSTANCE_GROUP_MEMBER, INSTANCE_GROUP_POLICY, INSTANCE_GROUPS, INSTANCE_MAPPINGS
from kilonova.db.engine import Tx
from kilonova.db.query import Row

_C = INSTANCE_GROUPS.c
_MEMBER = INSTANCE_GROUP_MEMBER.c
_POLICY = INSTANCE_GROUP_POLICY.c


def instance_group_get(tx: Tx, uuid: str) -> Row | None:
    return _first(_whole(tx, query.rows(tx, sa.select(INSTANCE_GROUPS).where(_C.uuid == uuid))))


_BY_MEMBER = (
    sa.select(_MEMBER.instance_uuid, _C.uuid)
    .join_from(INSTANCE_GROUP_MEMBER, INSTANCE_GROUPS, _MEMBER.group_id == _C.id)
    .where(_MEMBER.instance_uuid.in_(sa.bindparam("uuids", expanding=True)))
    .order_by(_C.id)
)


def instance_group_uuids_by_member(tx: Tx, instance_uuids: Iterable[str]) -> dict[str, list[str]]:
    """The uuids of the groups that each of these instances is in."""
    found: dict[str, list[str]] = {}
    for instance_uuid, uuid in tx.execute(_BY_MEMBER, {"uuids": list(instance_uuids)}):
        found.setdefault(instance_uuid, []).append(uuid)
    return found


def instance_group_uuids_there(tx: Tx, uuids: Iterable[str]) -> set[str]:
    """Which of these groups there are; no statement for none."""
    wanted = list(uuids)
    return set(query.values(tx, sa.select(_C.uuid).where(_C.uuid.in_(wanted)))) if wanted else set()


def instance_group_list(
    tx: Tx, project_id: str | None = None, *, limit: int | None = None, offset: int = 0
) -> list[Row]:
    """A page of groups by number: of a project, or of all."""
    statement = sa.select(INSTANCE_GROUPS).order_by(_C.id).limit(limit)
    if offset:
        statement = statement.offset(offset)
    if project_id is not None:
        statement = statement.where(_C.project_id == project_id)
    return _whole(tx, query.rows(tx, statement))


def instance_group_create(
    tx: Tx, values: Mapping[str, Any], policy: str | None = None, rules: Mapping[str, Any] | None = None
) -> Row:
    """A new group without members: `project_id`, `user_id`, `name` (a uuid is made when missing)."""
    created = query.insert(tx, INSTANCE_GROUPS, {"uuid": ids.new_uuid(), **values})
    if policy is not None:
        text = json.dumps(dict(rules)) if rules else None
        tx.execute(INSTANCE_GROUP_POLICY.insert().values(group_id=created["id"], policy=policy, rules=text))
    return {**created, "members": [], "policy": policy, "rules": dict(rules or {})}


def instance_group_delete(tx: Tx, uuid: str) -> bool:
    """Whether there was such a group."""
    number = tx.execute(sa.select(_C.id).where(_C.uuid == uuid)).scalar()
    if number is None:
        return False
    for table in (INSTANCE_GROUP_MEMBER, INSTANCE_GROUP_POLICY):
        tx.execute(table.delete().where(table.c.group_id == number))
    return tx.execute(INSTANCE_GROUPS.delete().where(_C.id == number)).rowcount > 0


def instance_group_members_add(tx: Tx, id: int, instance_uuids: Iterable[str]) -> None:
    """Put instances into a group; those in it already stay."""
    wanted = list(dict.fromkeys(instance_uuids))
    present = set(
        query.values(
            tx, sa.select(_MEMBER.instance_uuid).where(_MEMBER.group_id == id, _MEMBER.instance_uuid.in_(wanted))
        )
    )
    new = [{"group_id": id, "instance_uuid": uuid} for uuid in wanted if uuid not in present]
    query.insert_many(tx, INSTANCE_GROUP_MEMBER, new)


def instance_group_members_remove(tx: Tx, instance_uuids: Iterable[str]) -> int:
    """Take instances out of whatever group they are in; return how many were in one."""
    where = _MEMBER.instance_uuid.in_(list(instance_uuids))
    return tx.execute(INSTANCE_GROUP_MEMBER.delete().where(where)).rowcount


def instance_group_member_count(tx: Tx, id: int, user_id: str) -> int:
    """How many servers of the user count as members: those that are not being deleted."""
    mapping = INSTANCE_MAPPINGS.c
    statement = (
        sa.select(sa.func.count())
        .join_from(INSTANCE_GROUP_MEMBER, INSTANCE_MAPPINGS, _MEMBER.instance_uuid == mapping.instance_uuid)
        .where(_MEMBER.group_id == id, mapping.user_id == user_id, mapping.queued_for_delete.is_not(sa.true()))
    )
    return int(tx.execute(statement).scalar_one())


def instance_group_count(tx: Tx, project_id: str, user_id: str | None = None) -> dict[str, int]:
    """How many groups count against the quota of `project`, and of `user` within it if given."""
    total = sa.select(sa.func.count()).select_from(INSTANCE_GROUPS).where(_C.project_id == project_id)
    counted = {"project": int(tx.execute(total).scalar_one())}
    if user_id is not None:
        counted["user"] = int(tx.execute(total.where(_C.user_id == user_id)).scalar_one())
    return counted


def _whole(tx: Tx, found: Sequence[Row]) -> list[Row]:
    numbers = [row["id"] for row in found]
    members: dict[int, list[str]] = collections.defaultdict(list)
    policies: dict[int, tuple[str | None, str | None]] = {}
    if numbers:
        statement = sa.select(_MEMBER.group_id, _MEMBER.instance_uuid).where(_MEMBER.group_id.in_(numbers))
        for number, uuid in tx.execute(statement.order_by(_MEMBER.id)):
            members[number].append(uuid)
        texts = sa.select(_POLICY.group_id, _POLICY.policy, _POLICY.rules).where(_POLICY.group_id.in_(numbers))
        policies = {number: (policy, rules) for number, policy, rules in tx.execute(texts)}
    whole = []
    for row in found:
        policy, rules = policies.get(row["id"], (None, None))
        parts = {"members": members[row["id"]], "policy": policy, "rules": json.loads(rules) if rules else {}}
        whole.append({**row, **parts})
    return whole


def _first(found: Sequence[Row]) -> Row | None:
    return found[0] if found else None
