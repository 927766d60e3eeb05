"""Every table of the API database. Importing this fills METADATA, so only what creates or checks databases does."""

from kilonova.db.api.tables import leftover_placement
from kilonova.db.api.tables.metadata import METADATA

PARTS = (leftover_placement,)

__all__ = ["METADATA", "PARTS"]
