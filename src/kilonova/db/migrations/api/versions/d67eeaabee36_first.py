"""The first revision of the API database; no step leads to it."""

from kilonova.db.migrations.sync import MigrationError

revision = "d67eeaabee36"
down_revision: str | None = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    raise MigrationError("an empty database is created whole at the newest revision, not from the first one")
