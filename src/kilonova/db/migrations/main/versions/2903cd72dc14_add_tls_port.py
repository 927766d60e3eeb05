"""Consoles can have a TLS port."""

import sqlalchemy as sa

from kilonova.db.migrations import steps

revision = "2903cd72dc14"
down_revision: str | None = "d60bddf7a903"
branch_labels = None
depends_on = None


def upgrade() -> None:
    steps.add_columns("console_auth_tokens", sa.Column("tls_port", sa.Integer()))
