"""Repair: make the record and the world agree, one loop per kind of harm."""
