"""RPC method tables, one file per API."""
