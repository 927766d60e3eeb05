"""Alembic's environment."""

from alembic import context

from kilonova.db.migrations import environment

environment.run(context)
