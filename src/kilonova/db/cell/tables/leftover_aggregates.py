"""Tables of the cell database: host aggregates, kept because the schema is Nova's."""

import sqlalchemy as sa

from kilonova.db.cell.tables.metadata import METADATA
from kilonova.db.columns import soft_delete, timestamps

AGGREGATES = sa.Table(
    "aggregates",
    METADATA,
    *timestamps(),
    *soft_delete(),
    sa.Column("id", sa.Integer(), primary_key=True),
    sa.Column("name", sa.String(255)),
    sa.Column("uuid", sa.String(36)),
    sa.Index("aggregate_uuid_idx", "uuid"),
    mysql_charset="utf8",
)

AGGREGATE_HOSTS = sa.Table(
    "aggregate_hosts",
    METADATA,
    *timestamps(),
    *soft_delete(),
    sa.Column("id", sa.Integer(), primary_key=True),
    sa.Column("host", sa.String(255)),
    sa.Column("aggregate_id", sa.Integer(), nullable=False),
    sa.ForeignKeyConstraint(["aggregate_id"], ["aggregates.id"]),
    sa.UniqueConstraint("host", "aggregate_id", "deleted", name="uniq_aggregate_hosts0host0aggregate_id0deleted"),
    mysql_charset="utf8",
)

AGGREGATE_METADATA = sa.Table(
    "aggregate_metadata",
    METADATA,
    *timestamps(),
    *soft_delete(),
    sa.Column("id", sa.Integer(), primary_key=True),
    sa.Column("aggregate_id", sa.Integer(), nullable=False),
    sa.Column("key", sa.String(255), nullable=False),
    sa.Column("value", sa.String(255), nullable=False),
    sa.ForeignKeyConstraint(["aggregate_id"], ["aggregates.id"]),
    sa.UniqueConstraint("aggregate_id", "key", "deleted", name="uniq_aggregate_metadata0aggregate_id0key0deleted"),
    sa.Index("aggregate_metadata_key_idx", "key"),
    sa.Index("aggregate_metadata_value_idx", "value"),
    mysql_charset="utf8",
)

INSTANCE_GROUPS = sa.Table(
    "instance_groups",
    METADATA,
    *timestamps(),
    *soft_delete(),
    sa.Column("id", sa.Integer(), primary_key=True),
    sa.Column("user_id", sa.String(255)),
    sa.Column("project_id", sa.String(255)),
    sa.Column("uuid", sa.String(36), nullable=False),
    sa.Column("name", sa.String(255)),
    sa.UniqueConstraint("uuid", "deleted", name="uniq_instance_groups0uuid0deleted"),
    mysql_charset="utf8",
)

INSTANCE_GROUP_MEMBER = sa.Table(
    "instance_group_member",
    METADATA,
    *timestamps(),
    *soft_delete(),
    sa.Column("id", sa.Integer(), primary_key=True),
    sa.Column("instance_id", sa.String(255)),
    sa.Column("group_id", sa.Integer(), nullable=False),
    sa.ForeignKeyConstraint(["group_id"], ["instance_groups.id"]),
    sa.Index("instance_group_member_instance_idx", "instance_id"),
    mysql_charset="utf8",
)

INSTANCE_GROUP_POLICY = sa.Table(
    "instance_group_policy",
    METADATA,
    *timestamps(),
    *soft_delete(),
    sa.Column("id", sa.Integer(), primary_key=True),
    sa.Column("policy", sa.String(255)),
    sa.Column("group_id", sa.Integer(), nullable=False),
    sa.ForeignKeyConstraint(["group_id"], ["instance_groups.id"]),
    sa.Index("instance_group_policy_policy_idx", "policy"),
    mysql_charset="utf8",
)
