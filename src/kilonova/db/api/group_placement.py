"""A server's group as the scheduler needs it, in one statement."""

from __future__ import annotations

import json

import sqlalchemy as sa

from kilonova.db import query
from kilonova.db.api.tables import (
    CELL_MAPPINGS,
    INSTANCE_GROUP_MEMBER,
    INSTANCE_GROUP_POLICY,
    INSTANCE_GROUPS,
    INSTANCE_MAPPINGS,
)
from kilonova.db.engine import Tx
from kilonova.db.query import Row


def group_placement_get(tx: Tx, instance_uuid: str) -> Row | None:
    """uuid, policy, rules (dict) and members ({instance uuid: cell uuid or None}) of the group a server is in.

    Members that are being deleted are left out, and those that ended before they were in a cell: they have no mapping.
    """
    mine = INSTANCE_GROUP_MEMBER.alias("mine")
    member = INSTANCE_GROUP_MEMBER
    joined = (
        mine.join(INSTANCE_GROUPS, INSTANCE_GROUPS.c.id == mine.c.group_id)
        .outerjoin(INSTANCE_GROUP_POLICY, INSTANCE_GROUP_POLICY.c.group_id == INSTANCE_GROUPS.c.id)
        .join(member, member.c.group_id == INSTANCE_GROUPS.c.id)
        .outerjoin(INSTANCE_MAPPINGS, INSTANCE_MAPPINGS.c.instance_uuid == member.c.instance_uuid)
        .outerjoin(CELL_MAPPINGS, CELL_MAPPINGS.c.id == INSTANCE_MAPPINGS.c.cell_id)
    )
    statement = (
        sa.select(
            INSTANCE_GROUPS.c.uuid,
            INSTANCE_GROUP_POLICY.c.policy,
            INSTANCE_GROUP_POLICY.c.rules,
            member.c.instance_uuid.label("member"),
            CELL_MAPPINGS.c.uuid.label("cell_uuid"),
            INSTANCE_MAPPINGS.c.queued_for_delete,
            INSTANCE_MAPPINGS.c.id.label("mapping"),
        )
        .select_from(joined)
        .where(mine.c.instance_uuid == instance_uuid)
    )
    rows = query.rows(tx, statement)
    if not rows:
        return None
    first = rows[0]
    return {
        "uuid": first["uuid"],
        "policy": first["policy"],
        "rules": json.loads(first["rules"]) if first["rules"] else {},
        "members": {
            row["member"]: row["cell_uuid"]
            for row in rows
            if row["mapping"] is not None and not row["queued_for_delete"]
        },
    }
