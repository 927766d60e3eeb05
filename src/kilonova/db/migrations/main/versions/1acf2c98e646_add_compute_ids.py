"""Instances and migrations name their compute node by its id."""

import sqlalchemy as sa

from kilonova.db.migrations import steps

revision = "1acf2c98e646"
down_revision: str | None = "1b91788ec3a6"
branch_labels = None
depends_on = None

COLUMNS = (("instances", "compute_id"), ("migrations", "dest_compute_id"))


def upgrade() -> None:
    for name, column in COLUMNS:
        steps.add_columns(name, sa.Column(column, sa.BigInteger(), nullable=True))
        steps.create_index(f"{name}_{column}_deleted_idx", name, [column, "deleted"])
        steps.add_columns(f"shadow_{name}", sa.Column(column, sa.BigInteger(), nullable=True))
