"""Tables of the API database: server groups."""

import sqlalchemy as sa

from kilonova.db.api.tables.metadata import METADATA
from kilonova.db.columns import timestamps

INSTANCE_GROUPS = sa.Table(
    "instance_groups",
    METADATA,
    *timestamps(),
    sa.Column("id", sa.Integer(), primary_key=True),
    sa.Column("user_id", sa.String(255)),
    sa.Column("project_id", sa.String(255)),
    sa.Column("uuid", sa.String(36), nullable=False),
    sa.Column("name", sa.String(255)),
    sa.UniqueConstraint("uuid", name="uniq_instance_groups0uuid"),
    mysql_charset="utf8",
)

INSTANCE_GROUP_MEMBER = sa.Table(
    "instance_group_member",
    METADATA,
    *timestamps(),
    sa.Column("id", sa.Integer(), primary_key=True),
    sa.Column("instance_uuid", sa.String(255)),
    sa.Column("group_id", sa.Integer(), nullable=False),
    sa.ForeignKeyConstraint(["group_id"], ["instance_groups.id"]),
    sa.Index("instance_group_member_instance_idx", "instance_uuid"),
    mysql_charset="utf8",
)

INSTANCE_GROUP_POLICY = sa.Table(
    "instance_group_policy",
    METADATA,
    *timestamps(),
    sa.Column("id", sa.Integer(), primary_key=True),
    sa.Column("policy", sa.String(255)),
    sa.Column("group_id", sa.Integer(), nullable=False),
    sa.Column("rules", sa.Text()),
    sa.ForeignKeyConstraint(["group_id"], ["instance_groups.id"]),
    sa.Index("instance_group_policy_policy_idx", "policy"),
    mysql_charset="utf8",
)
