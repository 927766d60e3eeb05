"""Tables of the cell database: flavors, kept because the schema is Nova's."""

import sqlalchemy as sa

from kilonova.db.cell.tables.metadata import METADATA
from kilonova.db.columns import MEDIUM_TEXT, soft_delete, timestamps

INSTANCE_TYPES = sa.Table(
    "instance_types",
    METADATA,
    *timestamps(),
    *soft_delete(),
    sa.Column("name", sa.String(255)),
    sa.Column("id", sa.Integer(), primary_key=True),
    sa.Column("memory_mb", sa.Integer(), nullable=False),
    sa.Column("vcpus", sa.Integer(), nullable=False),
    sa.Column("swap", sa.Integer(), nullable=False),
    sa.Column("vcpu_weight", sa.Integer()),
    sa.Column("flavorid", sa.String(255)),
    sa.Column("rxtx_factor", sa.Float()),
    sa.Column("root_gb", sa.Integer()),
    sa.Column("ephemeral_gb", sa.Integer()),
    sa.Column("disabled", sa.Boolean()),
    sa.Column("is_public", sa.Boolean()),
    sa.UniqueConstraint("flavorid", "deleted", name="uniq_instance_types0flavorid0deleted"),
    sa.UniqueConstraint("name", "deleted", name="uniq_instance_types0name0deleted"),
    mysql_charset="utf8",
)

INSTANCE_TYPE_EXTRA_SPECS = sa.Table(
    "instance_type_extra_specs",
    METADATA,
    *timestamps(),
    *soft_delete(),
    sa.Column("id", sa.Integer(), primary_key=True),
    sa.Column("instance_type_id", sa.Integer(), nullable=False),
    sa.Column("key", sa.String(255)),
    sa.Column("value", sa.String(255)),
    sa.ForeignKeyConstraint(["instance_type_id"], ["instance_types.id"]),
    sa.UniqueConstraint(
        "instance_type_id", "key", "deleted", name="uniq_instance_type_extra_specs0instance_type_id0key0deleted"
    ),
    sa.Index("instance_type_extra_specs_instance_type_id_key_idx", "instance_type_id", "key"),
    mysql_charset="utf8",
    mysql_collate="utf8_bin",
)

INSTANCE_TYPE_PROJECTS = sa.Table(
    "instance_type_projects",
    METADATA,
    *timestamps(),
    *soft_delete(),
    sa.Column("id", sa.Integer(), primary_key=True),
    sa.Column("instance_type_id", sa.Integer(), nullable=False),
    sa.Column("project_id", sa.String(255)),
    sa.ForeignKeyConstraint(["instance_type_id"], ["instance_types.id"]),
    sa.UniqueConstraint(
        "instance_type_id",
        "project_id",
        "deleted",
        name="uniq_instance_type_projects0instance_type_id0project_id0deleted",
    ),
    sa.Index("instance_type_id", "instance_type_id").ddl_if(dialect="mysql"),
    mysql_charset="utf8",
)

KEY_PAIRS = sa.Table(
    "key_pairs",
    METADATA,
    *timestamps(),
    *soft_delete(),
    sa.Column("id", sa.Integer(), primary_key=True),
    sa.Column("name", sa.String(255), nullable=False),
    sa.Column("user_id", sa.String(255)),
    sa.Column("fingerprint", sa.String(255)),
    sa.Column("public_key", MEDIUM_TEXT),
    sa.Column(
        "type", sa.Enum("ssh", "x509", name="keypair_types", metadata=METADATA), nullable=False, server_default="ssh"
    ),
    sa.UniqueConstraint("user_id", "name", "deleted", name="uniq_key_pairs0user_id0name0deleted"),
    mysql_charset="utf8",
)
