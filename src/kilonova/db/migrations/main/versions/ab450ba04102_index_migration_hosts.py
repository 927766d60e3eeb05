"""Migrations are found by host, node and status."""

from kilonova.db.migrations import steps

revision = "ab450ba04102"
down_revision: str | None = "2903cd72dc14"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for index, side in (("dest", "dest"), ("src", "source")):
        steps.create_index(
            f"migrations_by_{index}_host_nodes_and_status_idx",
            "migrations",
            ["deleted", f"{side}_compute", f"{side}_node", "status"],
        )
