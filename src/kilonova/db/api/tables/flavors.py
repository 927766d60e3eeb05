"""Tables of the API database: flavors."""

import sqlalchemy as sa

from kilonova.db.api.tables.metadata import METADATA
from kilonova.db.columns import timestamps

FLAVORS = sa.Table(
    "flavors",
    METADATA,
    *timestamps(),
    sa.Column("name", sa.String(255), nullable=False),
    sa.Column("id", sa.Integer(), primary_key=True),
    sa.Column("memory_mb", sa.Integer(), nullable=False),
    sa.Column("vcpus", sa.Integer(), nullable=False),
    sa.Column("swap", sa.Integer(), nullable=False, default=0),
    sa.Column("vcpu_weight", sa.Integer()),
    sa.Column("flavorid", sa.String(255), nullable=False),
    sa.Column("rxtx_factor", sa.Float(), default=1),
    sa.Column("root_gb", sa.Integer()),
    sa.Column("ephemeral_gb", sa.Integer()),
    sa.Column("disabled", sa.Boolean(), default=False),
    sa.Column("is_public", sa.Boolean(), default=True),
    sa.Column("description", sa.Text()),
    sa.UniqueConstraint("flavorid", name="uniq_flavors0flavorid"),
    sa.UniqueConstraint("name", name="uniq_flavors0name"),
    mysql_charset="utf8",
)

FLAVOR_EXTRA_SPECS = sa.Table(
    "flavor_extra_specs",
    METADATA,
    *timestamps(),
    sa.Column("id", sa.Integer(), primary_key=True),
    sa.Column("flavor_id", sa.Integer(), nullable=False),
    sa.Column("key", sa.String(255), nullable=False),
    sa.Column("value", sa.String(255)),
    sa.ForeignKeyConstraint(["flavor_id"], ["flavors.id"]),
    sa.UniqueConstraint("flavor_id", "key", name="uniq_flavor_extra_specs0flavor_id0key"),
    sa.Index("flavor_extra_specs_flavor_id_key_idx", "flavor_id", "key"),
    mysql_charset="utf8",
)

FLAVOR_PROJECTS = sa.Table(
    "flavor_projects",
    METADATA,
    *timestamps(),
    sa.Column("id", sa.Integer(), primary_key=True),
    sa.Column("flavor_id", sa.Integer(), nullable=False),
    sa.Column("project_id", sa.String(255), nullable=False),
    sa.ForeignKeyConstraint(["flavor_id"], ["flavors.id"]),
    sa.UniqueConstraint("flavor_id", "project_id", name="uniq_flavor_projects0flavor_id0project_id"),
    mysql_charset="utf8",
)
