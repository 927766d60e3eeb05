"""Clients of other services, one folder each."""
