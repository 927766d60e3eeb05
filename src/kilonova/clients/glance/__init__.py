"""Glance client."""
