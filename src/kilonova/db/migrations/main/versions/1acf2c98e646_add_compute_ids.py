"""Instances and migrations name their compute node by its id."""

import sqlalchemy as sa
from alembic import op

revision = "1acf2c98e646"
down_revision: str | None = "1b91788ec3a6"
branch_labels = None
depends_on = None

COLUMNS = (("instances", "compute_id"), ("migrations", "dest_compute_id"))


def upgrade() -> None:
    for name, column in COLUMNS:
        with op.batch_alter_table(name) as table:
            table.add_column(sa.Column(column, sa.BigInteger(), nullable=True))
            table.create_index(f"{name}_{column}_deleted_idx", [column, "deleted"])
        with op.batch_alter_table(f"shadow_{name}") as table:
            table.add_column(sa.Column(column, sa.BigInteger(), nullable=True))
