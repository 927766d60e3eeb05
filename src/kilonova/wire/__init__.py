"""Transports: HTTP in, RPC both ways."""
