"""Block devices can be encrypted."""

import sqlalchemy as sa

from kilonova.db.migrations import steps

revision = "ccb0fa1a2252"
down_revision: str | None = "16f1fbcab42b"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for name in ("block_device_mapping", "shadow_block_device_mapping"):
        steps.add_columns(
            name,
            sa.Column("encrypted", sa.Boolean(), nullable=True),
            sa.Column("encryption_secret_uuid", sa.String(36), nullable=True),
            sa.Column("encryption_format", sa.String(128), nullable=True),
            sa.Column("encryption_options", sa.String(4096), nullable=True),
        )
