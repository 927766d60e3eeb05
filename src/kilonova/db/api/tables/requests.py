"""Tables of the API database: what was asked for and is not built yet."""

import sqlalchemy as sa

from kilonova.db.api.tables.metadata import METADATA
from kilonova.db.columns import MEDIUM_TEXT, timestamps

BUILD_REQUESTS = sa.Table(
    "build_requests",
    METADATA,
    *timestamps(),
    sa.Column("id", sa.Integer(), primary_key=True),
    sa.Column("project_id", sa.String(255), nullable=False),
    sa.Column("instance_uuid", sa.String(36)),
    sa.Column("instance", MEDIUM_TEXT),
    sa.Column("block_device_mappings", MEDIUM_TEXT),
    sa.Column("tags", sa.Text()),
    sa.UniqueConstraint("instance_uuid", name="uniq_build_requests0instance_uuid"),
    sa.Index("build_requests_instance_uuid_idx", "instance_uuid"),
    sa.Index("build_requests_project_id_idx", "project_id"),
    mysql_charset="utf8",
)

REQUEST_SPECS = sa.Table(
    "request_specs",
    METADATA,
    *timestamps(),
    sa.Column("id", sa.Integer(), primary_key=True),
    sa.Column("instance_uuid", sa.String(36), nullable=False),
    sa.Column("spec", MEDIUM_TEXT, nullable=False),
    sa.UniqueConstraint("instance_uuid", name="uniq_request_specs0instance_uuid"),
    sa.Index("request_spec_instance_uuid_idx", "instance_uuid"),
    mysql_charset="utf8",
)
