"""Placement client."""
