"""Clock, ids, retry, pools, shutdown, logging: nothing that knows what a server is."""
