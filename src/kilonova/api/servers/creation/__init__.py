"""Accepting new servers: what is wished, what it resolves to, what is recorded."""
