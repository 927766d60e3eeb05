"""The phases of building a server, shared by its first try and by those on alternates."""
