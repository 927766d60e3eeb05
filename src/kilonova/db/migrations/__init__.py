"""Alembic environments of both databases and of our own tables."""
