"""The version table of the time before Alembic goes."""

import sqlalchemy as sa
from alembic import op

revision = "1b91788ec3a6"
down_revision: str | None = "960aac0e09ea"
branch_labels = None
depends_on = None


def upgrade() -> None:
    if "migrate_version" in sa.inspect(op.get_bind()).get_table_names():
        op.drop_table("migrate_version")
