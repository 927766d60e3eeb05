"""Flows and their log."""

from kilonova.db.migrations.sync import MigrationError

revision = "7c1f0b6a2d01"
down_revision: str | None = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    raise MigrationError("the tables of the first revision are created whole")
