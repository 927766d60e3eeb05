"""Drive: run multi-step operations as flows, serve the database to hosts."""
