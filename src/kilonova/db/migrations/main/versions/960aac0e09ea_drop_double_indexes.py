"""Two indexes that repeat others go."""

from kilonova.db.migrations import steps

revision = "960aac0e09ea"
down_revision: str | None = "ccb0fa1a2252"
branch_labels = None
depends_on = None


def upgrade() -> None:
    steps.drop_index("console_auth_tokens_token_hash_idx", "console_auth_tokens")
    steps.drop_index("uuid", "instances")
