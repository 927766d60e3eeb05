"""Filters: each says why a host will not do."""
