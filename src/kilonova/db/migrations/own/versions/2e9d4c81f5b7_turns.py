"""Who comes first: what counts against quotas, where members of server groups go, and who runs which repair loop."""

import sqlalchemy as sa

from kilonova.db.migrations import steps

revision = "2e9d4c81f5b7"
down_revision: str | None = "7c1f0b6a2d01"
branch_labels = None
depends_on = None


def upgrade() -> None:
    steps.create_table(
        "kn_turn",
        sa.Column("scope", sa.String(300), primary_key=True),
        sa.Column("instances", sa.BigInteger(), nullable=False),
        sa.Column("cores", sa.BigInteger(), nullable=False),
        sa.Column("ram", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.Index("kn_turn_updated_at", "updated_at"),
        mysql_charset="utf8mb4",
    )
    steps.create_table(
        "kn_group_host",
        sa.Column("instance_uuid", sa.String(36), primary_key=True),
        sa.Column("group_uuid", sa.String(36), nullable=False),
        sa.Column("host", sa.String(255), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.Index("kn_group_host_group_uuid", "group_uuid"),
        sa.Index("kn_group_host_updated_at", "updated_at"),
        mysql_charset="utf8mb4",
    )
    steps.create_table(
        "kn_loop",
        sa.Column("name", sa.String(64), primary_key=True),
        sa.Column("owner", sa.String(255), nullable=True),
        sa.Column("lease_until", sa.BigInteger(), nullable=False),
        sa.Column("place", sa.String(255), nullable=True),
        mysql_charset="utf8mb4",
    )
