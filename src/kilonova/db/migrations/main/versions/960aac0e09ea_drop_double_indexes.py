"""Two indexes that repeat others go."""

from alembic import op

revision = "960aac0e09ea"
down_revision: str | None = "ccb0fa1a2252"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.drop_index("console_auth_tokens_token_hash_idx", table_name="console_auth_tokens")
    op.drop_index("uuid", table_name="instances")
