"""Consoles can have a TLS port."""

import sqlalchemy as sa
from alembic import op

revision = "2903cd72dc14"
down_revision: str | None = "d60bddf7a903"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("console_auth_tokens") as table:
        table.add_column(sa.Column("tls_port", sa.Integer()))
