"""The version table of the time before Alembic goes."""

from kilonova.db.migrations import steps

revision = "cdeec0c85668"
down_revision: str | None = "b30f573d3377"
branch_labels = None
depends_on = None


def upgrade() -> None:
    steps.drop_table("migrate_version")
