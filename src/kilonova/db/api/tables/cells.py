"""Tables of the API database: where cells, hosts and instances are."""

import sqlalchemy as sa

from kilonova.db.api.tables.metadata import METADATA
from kilonova.db.columns import timestamps

CELL_MAPPINGS = sa.Table(
    "cell_mappings",
    METADATA,
    *timestamps(),
    sa.Column("id", sa.Integer(), primary_key=True),
    sa.Column("uuid", sa.String(36), nullable=False),
    sa.Column("name", sa.String(255)),
    sa.Column("transport_url", sa.Text()),
    sa.Column("database_connection", sa.Text()),
    sa.Column("disabled", sa.Boolean(), default=False),
    sa.UniqueConstraint("uuid", name="uniq_cell_mappings0uuid"),
    sa.Index("uuid_idx", "uuid"),
    mysql_charset="utf8",
)

HOST_MAPPINGS = sa.Table(
    "host_mappings",
    METADATA,
    *timestamps(),
    sa.Column("id", sa.Integer(), primary_key=True),
    sa.Column("cell_id", sa.Integer(), nullable=False),
    sa.Column("host", sa.String(255), nullable=False),
    sa.ForeignKeyConstraint(["cell_id"], ["cell_mappings.id"]),
    sa.UniqueConstraint("host", name="uniq_host_mappings0host"),
    sa.Index("host_idx", "host"),
    mysql_charset="utf8",
)

INSTANCE_MAPPINGS = sa.Table(
    "instance_mappings",
    METADATA,
    *timestamps(),
    sa.Column("id", sa.Integer(), primary_key=True),
    sa.Column("instance_uuid", sa.String(36), nullable=False),
    sa.Column("cell_id", sa.Integer()),
    sa.Column("project_id", sa.String(255), nullable=False),
    sa.Column("queued_for_delete", sa.Boolean()),
    sa.Column("user_id", sa.String(255)),
    sa.ForeignKeyConstraint(["cell_id"], ["cell_mappings.id"]),
    sa.UniqueConstraint("instance_uuid", name="uniq_instance_mappings0instance_uuid"),
    sa.Index("instance_mappings_user_id_project_id_idx", "user_id", "project_id"),
    sa.Index("instance_uuid_idx", "instance_uuid"),
    sa.Index("project_id_idx", "project_id"),
    mysql_charset="utf8",
)
