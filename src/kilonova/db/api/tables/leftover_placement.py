"""Tables of the API database: the placement tables of older releases, kept because the schema is Nova's."""

import sqlalchemy as sa
from sqlalchemy.dialects import mysql

from kilonova.db.api.tables.metadata import METADATA
from kilonova.db.columns import timestamps

ALLOCATIONS = sa.Table(
    "allocations",
    METADATA,
    *timestamps(),
    sa.Column("id", sa.Integer(), primary_key=True),
    sa.Column("resource_provider_id", sa.Integer(), nullable=False),
    sa.Column("consumer_id", sa.String(36), nullable=False),
    sa.Column("resource_class_id", sa.Integer(), nullable=False),
    sa.Column("used", sa.Integer(), nullable=False),
    sa.Index("allocations_consumer_id_idx", "consumer_id"),
    sa.Index("allocations_resource_class_id_idx", "resource_class_id"),
    sa.Index("allocations_resource_provider_class_used_idx", "resource_provider_id", "resource_class_id", "used"),
    mysql_charset="latin1",
)

CONSUMERS = sa.Table(
    "consumers",
    METADATA,
    *timestamps(),
    sa.Column("id", sa.Integer(), primary_key=True),
    sa.Column("uuid", sa.String(36), nullable=False),
    sa.Column("project_id", sa.Integer(), nullable=False),
    sa.Column("user_id", sa.Integer(), nullable=False),
    sa.Column("generation", sa.Integer(), nullable=False, server_default="0"),
    sa.UniqueConstraint("uuid", name="uniq_consumers0uuid"),
    sa.Index("consumers_project_id_user_id_uuid_idx", "project_id", "user_id", "uuid"),
    sa.Index("consumers_project_id_uuid_idx", "project_id", "uuid"),
    mysql_charset="latin1",
)

INVENTORIES = sa.Table(
    "inventories",
    METADATA,
    *timestamps(),
    sa.Column("id", sa.Integer(), primary_key=True),
    sa.Column("resource_provider_id", sa.Integer(), nullable=False),
    sa.Column("resource_class_id", sa.Integer(), nullable=False),
    sa.Column("total", sa.Integer(), nullable=False),
    sa.Column("reserved", sa.Integer(), nullable=False),
    sa.Column("min_unit", sa.Integer(), nullable=False),
    sa.Column("max_unit", sa.Integer(), nullable=False),
    sa.Column("step_size", sa.Integer(), nullable=False),
    sa.Column("allocation_ratio", sa.Float(), nullable=False),
    sa.UniqueConstraint(
        "resource_provider_id", "resource_class_id", name="uniq_inventories0resource_provider_resource_class"
    ),
    sa.Index("inventories_resource_class_id_idx", "resource_class_id"),
    sa.Index("inventories_resource_provider_id_idx", "resource_provider_id"),
    sa.Index("inventories_resource_provider_resource_class_idx", "resource_provider_id", "resource_class_id"),
    mysql_charset="latin1",
)

PLACEMENT_AGGREGATES = sa.Table(
    "placement_aggregates",
    METADATA,
    *timestamps(),
    sa.Column("id", sa.Integer(), primary_key=True),
    sa.Column("uuid", sa.String(36)),
    sa.UniqueConstraint("uuid", name="uniq_placement_aggregates0uuid"),
    sa.Index("ix_placement_aggregates_uuid", "uuid"),
    mysql_charset="latin1",
)

PROJECTS = sa.Table(
    "projects",
    METADATA,
    *timestamps(),
    sa.Column("id", sa.Integer(), primary_key=True),
    sa.Column("external_id", sa.String(255), nullable=False),
    sa.UniqueConstraint("external_id", name="uniq_projects0external_id"),
    mysql_charset="latin1",
)

RESOURCE_CLASSES = sa.Table(
    "resource_classes",
    METADATA,
    *timestamps(),
    sa.Column("id", sa.Integer(), primary_key=True),
    sa.Column("name", sa.String(255), nullable=False),
    sa.UniqueConstraint("name", name="uniq_resource_classes0name"),
    mysql_charset="latin1",
)

RESOURCE_PROVIDER_AGGREGATES = sa.Table(
    "resource_provider_aggregates",
    METADATA,
    *timestamps(),
    sa.Column("resource_provider_id", sa.Integer(), primary_key=True, autoincrement=False),
    sa.Column("aggregate_id", sa.Integer(), primary_key=True, autoincrement=False),
    sa.Index("resource_provider_aggregates_aggregate_id_idx", "aggregate_id"),
    mysql_charset="latin1",
)

RESOURCE_PROVIDER_TRAITS = sa.Table(
    "resource_provider_traits",
    METADATA,
    *timestamps(),
    sa.Column("trait_id", sa.Integer(), primary_key=True, autoincrement=False),
    sa.Column("resource_provider_id", sa.Integer(), primary_key=True, autoincrement=False),
    sa.ForeignKeyConstraint(["resource_provider_id"], ["resource_providers.id"]),
    sa.ForeignKeyConstraint(["trait_id"], ["traits.id"]),
    sa.Index("resource_provider_traits_resource_provider_trait_idx", "resource_provider_id", "trait_id"),
    mysql_charset="latin1",
)

RESOURCE_PROVIDERS = sa.Table(
    "resource_providers",
    METADATA,
    *timestamps(),
    sa.Column("id", sa.Integer(), primary_key=True),
    sa.Column("uuid", sa.String(36), nullable=False),
    sa.Column("name", sa.String(200).with_variant(mysql.VARCHAR(200, charset="utf8", collation="utf8_bin"), "mysql")),
    sa.Column("generation", sa.Integer()),
    sa.Column("can_host", sa.Integer()),
    sa.Column("root_provider_id", sa.Integer()),
    sa.Column("parent_provider_id", sa.Integer()),
    sa.ForeignKeyConstraint(["parent_provider_id"], ["resource_providers.id"]),
    sa.ForeignKeyConstraint(["root_provider_id"], ["resource_providers.id"]),
    sa.UniqueConstraint("name", name="uniq_resource_providers0name"),
    sa.UniqueConstraint("uuid", name="uniq_resource_providers0uuid"),
    sa.Index("resource_providers_name_idx", "name"),
    sa.Index("resource_providers_parent_provider_id_idx", "parent_provider_id"),
    sa.Index("resource_providers_root_provider_id_idx", "root_provider_id"),
    sa.Index("resource_providers_uuid_idx", "uuid"),
    mysql_charset="latin1",
)

TRAITS = sa.Table(
    "traits",
    METADATA,
    *timestamps(),
    sa.Column("id", sa.Integer(), primary_key=True),
    sa.Column(
        "name",
        sa.String(255).with_variant(mysql.VARCHAR(255, charset="utf8", collation="utf8_bin"), "mysql"),
        nullable=False,
    ),
    sa.UniqueConstraint("name", name="uniq_traits0name"),
    mysql_charset="latin1",
)

USERS = sa.Table(
    "users",
    METADATA,
    *timestamps(),
    sa.Column("id", sa.Integer(), primary_key=True),
    sa.Column("external_id", sa.String(255), nullable=False),
    sa.UniqueConstraint("external_id", name="uniq_users0external_id"),
    mysql_charset="latin1",
)
