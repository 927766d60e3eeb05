"""The object service: hosts act on wire objects, the conductor does it in the database."""
