"""One module per service: its configuration, its first-time set-up, its daemons and what it is filled with."""
