"""Executables, one short file each."""
