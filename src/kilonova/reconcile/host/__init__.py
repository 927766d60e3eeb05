"""Loops that run in the compute agent."""
