"""Tables of the cell database: the placement tables of older releases, kept because the schema is Nova's."""

import sqlalchemy as sa
from sqlalchemy.dialects import mysql

from kilonova.db.cell.tables.metadata import METADATA

RESOURCE_PROVIDERS = sa.Table(
    "resource_providers",
    METADATA,
    sa.Column("id", sa.Integer(), primary_key=True),
    sa.Column("uuid", sa.String(36), nullable=False),
    sa.Column(
        "name", sa.String(200).with_variant(mysql.VARCHAR(200, charset="utf8", collation="utf8_general_ci"), "mysql")
    ),
    sa.Column("generation", sa.Integer()),
    sa.Column("can_host", sa.Integer()),
    sa.UniqueConstraint("name", name="uniq_resource_providers0name"),
    sa.UniqueConstraint("uuid", name="uniq_resource_providers0uuid"),
    sa.Index("resource_providers_name_idx", "name"),
    sa.Index("resource_providers_uuid_idx", "uuid"),
    mysql_charset="latin1",
)

INVENTORIES = sa.Table(
    "inventories",
    METADATA,
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

ALLOCATIONS = sa.Table(
    "allocations",
    METADATA,
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

RESOURCE_PROVIDER_AGGREGATES = sa.Table(
    "resource_provider_aggregates",
    METADATA,
    sa.Column("resource_provider_id", sa.Integer(), primary_key=True, autoincrement=False),
    sa.Column("aggregate_id", sa.Integer(), primary_key=True, autoincrement=False),
    sa.Index("resource_provider_aggregates_aggregate_id_idx", "aggregate_id"),
    mysql_charset="latin1",
)
