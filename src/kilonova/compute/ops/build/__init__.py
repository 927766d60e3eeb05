"""Building a server on this host: `run` (the steps), `failure` (what is undone and who tries next), `recover`."""
