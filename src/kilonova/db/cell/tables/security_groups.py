"""Tables of the cell database: security groups of older releases."""

import sqlalchemy as sa

from kilonova.db.cell.tables.metadata import METADATA
from kilonova.db.columns import INET, soft_delete, timestamps

SECURITY_GROUPS = sa.Table(
    "security_groups",
    METADATA,
    *timestamps(),
    *soft_delete(),
    sa.Column("id", sa.Integer(), primary_key=True),
    sa.Column("name", sa.String(255)),
    sa.Column("description", sa.String(255)),
    sa.Column("user_id", sa.String(255)),
    sa.Column("project_id", sa.String(255)),
    sa.UniqueConstraint("project_id", "name", "deleted", name="uniq_security_groups0project_id0name0deleted"),
    mysql_charset="utf8",
)

SECURITY_GROUP_RULES = sa.Table(
    "security_group_rules",
    METADATA,
    *timestamps(),
    *soft_delete(),
    sa.Column("id", sa.Integer(), primary_key=True),
    sa.Column("parent_group_id", sa.Integer()),
    sa.Column("protocol", sa.String(255)),
    sa.Column("from_port", sa.Integer()),
    sa.Column("to_port", sa.Integer()),
    sa.Column("cidr", INET),
    sa.Column("group_id", sa.Integer()),
    sa.ForeignKeyConstraint(["group_id"], ["security_groups.id"]),
    sa.ForeignKeyConstraint(["parent_group_id"], ["security_groups.id"]),
    mysql_charset="utf8",
)

SECURITY_GROUP_INSTANCE_ASSOCIATION = sa.Table(
    "security_group_instance_association",
    METADATA,
    *timestamps(),
    *soft_delete(),
    sa.Column("id", sa.Integer(), primary_key=True),
    sa.Column("security_group_id", sa.Integer()),
    sa.Column("instance_uuid", sa.String(36)),
    sa.ForeignKeyConstraint(
        ["instance_uuid"], ["instances.uuid"], name="security_group_instance_association_instance_uuid_fkey"
    ),
    sa.ForeignKeyConstraint(["security_group_id"], ["security_groups.id"]),
    sa.Index("security_group_instance_association_instance_uuid_idx", "instance_uuid"),
    mysql_charset="utf8",
)
