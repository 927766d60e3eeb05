"""Tables of the cell database: migrations."""

import sqlalchemy as sa

from kilonova.db.cell.tables.metadata import METADATA
from kilonova.db.columns import soft_delete, timestamps

MIGRATIONS = sa.Table(
    "migrations",
    METADATA,
    *timestamps(),
    *soft_delete(),
    sa.Column("id", sa.Integer(), primary_key=True),
    sa.Column("source_compute", sa.String(255)),
    sa.Column("dest_compute", sa.String(255)),
    sa.Column("dest_host", sa.String(255)),
    sa.Column("status", sa.String(255)),
    sa.Column("instance_uuid", sa.String(36)),
    sa.Column("old_instance_type_id", sa.Integer()),
    sa.Column("new_instance_type_id", sa.Integer()),
    sa.Column("source_node", sa.String(255)),
    sa.Column("dest_node", sa.String(255)),
    sa.Column(
        "migration_type",
        sa.Enum("migration", "resize", "live-migration", "evacuation", name="migration_type", metadata=METADATA),
    ),
    sa.Column("hidden", sa.Boolean(), default=False),
    sa.Column("memory_total", sa.BigInteger()),
    sa.Column("memory_processed", sa.BigInteger()),
    sa.Column("memory_remaining", sa.BigInteger()),
    sa.Column("disk_total", sa.BigInteger()),
    sa.Column("disk_processed", sa.BigInteger()),
    sa.Column("disk_remaining", sa.BigInteger()),
    sa.Column("uuid", sa.String(36)),
    sa.Column("cross_cell_move", sa.Boolean(), default=False),
    sa.Column("user_id", sa.String(255)),
    sa.Column("project_id", sa.String(255)),
    sa.Column("dest_compute_id", sa.BigInteger()),
    sa.ForeignKeyConstraint(["instance_uuid"], ["instances.uuid"], name="fk_migrations_instance_uuid"),
    sa.Index("migrations_by_dest_host_nodes_and_status_idx", "deleted", "dest_compute", "dest_node", "status"),
    sa.Index(
        "migrations_by_host_nodes_and_status_idx",
        "deleted",
        "source_compute",
        "dest_compute",
        "source_node",
        "dest_node",
        "status",
        mysql_length={"source_compute": 100, "dest_compute": 100, "source_node": 100, "dest_node": 100},
    ),
    sa.Index("migrations_by_src_host_nodes_and_status_idx", "deleted", "source_compute", "source_node", "status"),
    sa.Index("migrations_dest_compute_id_deleted_idx", "dest_compute_id", "deleted"),
    sa.Index("migrations_instance_uuid_and_status_idx", "deleted", "instance_uuid", "status"),
    sa.Index("migrations_updated_at_idx", "updated_at"),
    sa.Index("migrations_uuid", "uuid", unique=True),
    mysql_charset="utf8",
)
