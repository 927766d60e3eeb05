"""Tables of the cell database: other tables of older releases, kept because the schema is Nova's."""

import sqlalchemy as sa

from kilonova.db.cell.tables.metadata import METADATA
from kilonova.db.columns import INET_SMALL, soft_delete, timestamps

AGENT_BUILDS = sa.Table(
    "agent_builds",
    METADATA,
    *timestamps(),
    *soft_delete(),
    sa.Column("id", sa.Integer(), primary_key=True),
    sa.Column("hypervisor", sa.String(255)),
    sa.Column("os", sa.String(255)),
    sa.Column("architecture", sa.String(255)),
    sa.Column("version", sa.String(255)),
    sa.Column("url", sa.String(255)),
    sa.Column("md5hash", sa.String(255)),
    sa.UniqueConstraint(
        "hypervisor", "os", "architecture", "deleted", name="uniq_agent_builds0hypervisor0os0architecture0deleted"
    ),
    sa.Index("agent_builds_hypervisor_os_arch_idx", "hypervisor", "os", "architecture"),
    mysql_charset="utf8",
)

BW_USAGE_CACHE = sa.Table(
    "bw_usage_cache",
    METADATA,
    *timestamps(),
    *soft_delete(),
    sa.Column("id", sa.Integer(), primary_key=True),
    sa.Column("start_period", sa.DateTime(), nullable=False),
    sa.Column("last_refreshed", sa.DateTime()),
    sa.Column("bw_in", sa.BigInteger()),
    sa.Column("bw_out", sa.BigInteger()),
    sa.Column("mac", sa.String(255)),
    sa.Column("uuid", sa.String(36)),
    sa.Column("last_ctr_in", sa.BigInteger()),
    sa.Column("last_ctr_out", sa.BigInteger()),
    sa.Index("bw_usage_cache_uuid_start_period_idx", "uuid", "start_period"),
    mysql_charset="utf8",
)

CELLS = sa.Table(
    "cells",
    METADATA,
    *timestamps(),
    *soft_delete(),
    sa.Column("id", sa.Integer(), primary_key=True),
    sa.Column("api_url", sa.String(255)),
    sa.Column("weight_offset", sa.Float()),
    sa.Column("weight_scale", sa.Float()),
    sa.Column("name", sa.String(255)),
    sa.Column("is_parent", sa.Boolean()),
    sa.Column("transport_url", sa.String(255), nullable=False),
    sa.UniqueConstraint("name", "deleted", name="uniq_cells0name0deleted"),
    mysql_charset="utf8",
)

CONSOLE_POOLS = sa.Table(
    "console_pools",
    METADATA,
    *timestamps(),
    *soft_delete(),
    sa.Column("id", sa.Integer(), primary_key=True),
    sa.Column("address", INET_SMALL),
    sa.Column("username", sa.String(255)),
    sa.Column("password", sa.String(255)),
    sa.Column("console_type", sa.String(255)),
    sa.Column("public_hostname", sa.String(255)),
    sa.Column("host", sa.String(255)),
    sa.Column("compute_host", sa.String(255)),
    sa.UniqueConstraint(
        "host",
        "console_type",
        "compute_host",
        "deleted",
        name="uniq_console_pools0host0console_type0compute_host0deleted",
    ),
    mysql_charset="utf8",
)

CONSOLES = sa.Table(
    "consoles",
    METADATA,
    *timestamps(),
    *soft_delete(),
    sa.Column("id", sa.Integer(), primary_key=True),
    sa.Column("instance_name", sa.String(255)),
    sa.Column("password", sa.String(255)),
    sa.Column("port", sa.Integer()),
    sa.Column("pool_id", sa.Integer()),
    sa.Column("instance_uuid", sa.String(36)),
    sa.ForeignKeyConstraint(["instance_uuid"], ["instances.uuid"], name="consoles_instance_uuid_fkey"),
    sa.ForeignKeyConstraint(["pool_id"], ["console_pools.id"]),
    sa.Index("consoles_instance_uuid_idx", "instance_uuid"),
    mysql_charset="utf8",
)

SNAPSHOT_ID_MAPPINGS = sa.Table(
    "snapshot_id_mappings",
    METADATA,
    *timestamps(),
    *soft_delete(),
    sa.Column("id", sa.Integer(), primary_key=True),
    sa.Column("uuid", sa.String(36), nullable=False),
    mysql_charset="utf8",
)

SNAPSHOTS = sa.Table(
    "snapshots",
    METADATA,
    *timestamps(),
    sa.Column("deleted_at", sa.DateTime()),
    sa.Column("id", sa.String(36), primary_key=True),
    sa.Column("volume_id", sa.String(36), nullable=False),
    sa.Column("user_id", sa.String(255)),
    sa.Column("project_id", sa.String(255)),
    sa.Column("status", sa.String(255)),
    sa.Column("progress", sa.String(255)),
    sa.Column("volume_size", sa.Integer()),
    sa.Column("scheduled_at", sa.DateTime()),
    sa.Column("display_name", sa.String(255)),
    sa.Column("display_description", sa.String(255)),
    sa.Column("deleted", sa.String(36)),
    mysql_charset="utf8",
)

VOLUME_ID_MAPPINGS = sa.Table(
    "volume_id_mappings",
    METADATA,
    *timestamps(),
    *soft_delete(),
    sa.Column("id", sa.Integer(), primary_key=True),
    sa.Column("uuid", sa.String(36), nullable=False),
    mysql_charset="utf8",
)
