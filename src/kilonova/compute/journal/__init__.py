"""The host's own memory of what it accepted: see `journal.book`."""
