"""Tables of the API database: quotas."""

import sqlalchemy as sa

from kilonova.db.api.tables.metadata import METADATA
from kilonova.db.columns import timestamps

QUOTAS = sa.Table(
    "quotas",
    METADATA,
    *timestamps(),
    sa.Column("id", sa.Integer(), primary_key=True),
    sa.Column("project_id", sa.String(255)),
    sa.Column("resource", sa.String(255), nullable=False),
    sa.Column("hard_limit", sa.Integer()),
    sa.UniqueConstraint("project_id", "resource", name="uniq_quotas0project_id0resource"),
    mysql_charset="utf8",
)

QUOTA_CLASSES = sa.Table(
    "quota_classes",
    METADATA,
    *timestamps(),
    sa.Column("id", sa.Integer(), primary_key=True),
    sa.Column("class_name", sa.String(255)),
    sa.Column("resource", sa.String(255)),
    sa.Column("hard_limit", sa.Integer()),
    sa.Index("quota_classes_class_name_idx", "class_name"),
    mysql_charset="utf8",
)

PROJECT_USER_QUOTAS = sa.Table(
    "project_user_quotas",
    METADATA,
    *timestamps(),
    sa.Column("id", sa.Integer(), primary_key=True),
    sa.Column("user_id", sa.String(255), nullable=False),
    sa.Column("project_id", sa.String(255), nullable=False),
    sa.Column("resource", sa.String(255), nullable=False),
    sa.Column("hard_limit", sa.Integer()),
    sa.UniqueConstraint(
        "user_id", "project_id", "resource", name="uniq_project_user_quotas0user_id0project_id0resource"
    ),
    sa.Index("project_user_quotas_project_id_idx", "project_id"),
    sa.Index("project_user_quotas_user_id_idx", "user_id"),
    mysql_charset="utf8",
)

QUOTA_USAGES = sa.Table(
    "quota_usages",
    METADATA,
    *timestamps(),
    sa.Column("id", sa.Integer(), primary_key=True),
    sa.Column("project_id", sa.String(255)),
    sa.Column("resource", sa.String(255), nullable=False),
    sa.Column("in_use", sa.Integer(), nullable=False),
    sa.Column("reserved", sa.Integer(), nullable=False),
    sa.Column("until_refresh", sa.Integer()),
    sa.Column("user_id", sa.String(255)),
    sa.Index("quota_usages_project_id_idx", "project_id"),
    sa.Index("quota_usages_user_id_idx", "user_id"),
    mysql_charset="utf8",
)

RESERVATIONS = sa.Table(
    "reservations",
    METADATA,
    *timestamps(),
    sa.Column("id", sa.Integer(), primary_key=True),
    sa.Column("uuid", sa.String(36), nullable=False),
    sa.Column("usage_id", sa.Integer(), nullable=False),
    sa.Column("project_id", sa.String(255)),
    sa.Column("resource", sa.String(255)),
    sa.Column("delta", sa.Integer(), nullable=False),
    sa.Column("expire", sa.DateTime()),
    sa.Column("user_id", sa.String(255)),
    sa.ForeignKeyConstraint(["usage_id"], ["quota_usages.id"]),
    sa.Index("reservations_expire_idx", "expire"),
    sa.Index("reservations_project_id_idx", "project_id"),
    sa.Index("reservations_user_id_idx", "user_id"),
    sa.Index("reservations_uuid_idx", "uuid"),
    mysql_charset="utf8",
)
