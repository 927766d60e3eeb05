"""Migrations of both databases, with Nova's revision ids, and of our own tables beside them."""
