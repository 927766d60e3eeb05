"""What the three Alembic environments have in common."""

from __future__ import annotations

from typing import Any


def run(context: Any) -> None:
    """Run the asked-for migrations on the connection that the caller passes in."""
    context.configure(
        connection=context.config.attributes["connection"],
        render_as_batch=True,
        version_table=context.config.attributes["version_table"],
    )
    with context.begin_transaction():
        context.run_migrations()
