"""Loops that run in the conductor."""
