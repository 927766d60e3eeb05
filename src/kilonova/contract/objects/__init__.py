"""Versioned wire objects, one file per object. Fields and versions, no I/O."""
