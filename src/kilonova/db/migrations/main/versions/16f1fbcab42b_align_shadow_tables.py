"""Four differences between shadow tables and their tables go."""

import sqlalchemy as sa
from alembic import op

from kilonova.db.migrations import steps

revision = "16f1fbcab42b"
down_revision: str | None = "8f2f1571d55b"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("shadow_volume_usage_cache") as table:
        table.alter_column("user_id", existing_type=sa.String(36), type_=sa.String(64))
    steps.drop_index("shadow_instance_extra_idx", "shadow_instance_extra")
    steps.drop_index("shadow_migrations_uuid", "shadow_migrations")
    if op.get_bind().dialect.name == "mysql":
        op.execute("ALTER TABLE shadow_instance_type_extra_specs CONVERT TO CHARACTER SET utf8 COLLATE utf8_bin")
