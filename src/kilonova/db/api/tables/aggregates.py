"""Tables of the API database: host aggregates."""

import sqlalchemy as sa

from kilonova.db.api.tables.metadata import METADATA
from kilonova.db.columns import timestamps

AGGREGATES = sa.Table(
    "aggregates",
    METADATA,
    *timestamps(),
    sa.Column("id", sa.Integer(), primary_key=True),
    sa.Column("uuid", sa.String(36)),
    sa.Column("name", sa.String(255)),
    sa.UniqueConstraint("name", name="uniq_aggregate0name"),
    sa.Index("aggregate_uuid_idx", "uuid"),
    mysql_charset="utf8",
)

AGGREGATE_HOSTS = sa.Table(
    "aggregate_hosts",
    METADATA,
    *timestamps(),
    sa.Column("id", sa.Integer(), primary_key=True),
    sa.Column("host", sa.String(255)),
    sa.Column("aggregate_id", sa.Integer(), nullable=False),
    sa.ForeignKeyConstraint(["aggregate_id"], ["aggregates.id"]),
    sa.UniqueConstraint("host", "aggregate_id", name="uniq_aggregate_hosts0host0aggregate_id"),
    mysql_charset="utf8",
)

AGGREGATE_METADATA = sa.Table(
    "aggregate_metadata",
    METADATA,
    *timestamps(),
    sa.Column("id", sa.Integer(), primary_key=True),
    sa.Column("aggregate_id", sa.Integer(), nullable=False),
    sa.Column("key", sa.String(255), nullable=False),
    sa.Column("value", sa.String(255), nullable=False),
    sa.ForeignKeyConstraint(["aggregate_id"], ["aggregates.id"]),
    sa.UniqueConstraint("aggregate_id", "key", name="uniq_aggregate_metadata0aggregate_id0key"),
    sa.Index("aggregate_metadata_key_idx", "key"),
    mysql_charset="utf8",
)
