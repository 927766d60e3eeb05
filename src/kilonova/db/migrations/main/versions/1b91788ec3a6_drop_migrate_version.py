"""The version table of the time before Alembic goes."""

from kilonova.db.migrations import steps

revision = "1b91788ec3a6"
down_revision: str | None = "960aac0e09ea"
branch_labels = None
depends_on = None


def upgrade() -> None:
    steps.drop_table("migrate_version")
