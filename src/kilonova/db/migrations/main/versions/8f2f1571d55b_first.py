"""The first revision of a cell database; no step leads to it."""

from kilonova.db.migrations.sync import MigrationError

revision = "8f2f1571d55b"
down_revision: str | None = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    raise MigrationError("an empty database is created whole at the newest revision, not from the first one")
