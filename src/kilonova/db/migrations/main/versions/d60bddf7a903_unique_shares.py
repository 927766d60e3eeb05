"""A share and a tag occur once per instance; the table was not in use before, so it is made anew."""

import sqlalchemy as sa

from kilonova.db.migrations import steps

revision = "d60bddf7a903"
down_revision: str | None = "13863f4e1612"
branch_labels = None
depends_on = None

UNIQUE = "uniq_key_pairs0instance_uuid0tag"


def upgrade() -> None:
    if steps.has_table("share_mapping") and UNIQUE not in steps.unique_constraints("share_mapping"):
        steps.drop_table("share_mapping")
    steps.create_table(
        "share_mapping",
        sa.Column("created_at", sa.DateTime()),
        sa.Column("updated_at", sa.DateTime()),
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), primary_key=True, autoincrement=True),
        sa.Column("uuid", sa.String(36)),
        sa.Column("instance_uuid", sa.String(36)),
        sa.Column("share_id", sa.String(36)),
        sa.Column("status", sa.String(32)),
        sa.Column("tag", sa.String(48)),
        sa.Column("export_location", sa.Text()),
        sa.Column("share_proto", sa.String(32)),
        sa.ForeignKeyConstraint(["instance_uuid"], ["instances.uuid"], name="share_mapping_instance_uuid_fkey"),
        sa.UniqueConstraint("instance_uuid", "share_id", name="uniq_key_pairs0instance_uuid0share_id"),
        sa.UniqueConstraint("instance_uuid", "tag", name=UNIQUE),
        sa.Index("share_idx", "share_id"),
        sa.Index("share_mapping_instance_uuid_share_id_idx", "instance_uuid", "share_id"),
        mysql_engine="InnoDB",
        mysql_charset="utf8",
    )
