"""The version table of the time before Alembic goes."""

import sqlalchemy as sa
from alembic import op

revision = "cdeec0c85668"
down_revision: str | None = "b30f573d3377"
branch_labels = None
depends_on = None


def upgrade() -> None:
    if "migrate_version" in sa.inspect(op.get_bind()).get_table_names():
        op.drop_table("migrate_version")
