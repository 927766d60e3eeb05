"""Every table of a cell database. Importing this fills METADATA, so only what creates or archives databases does."""

from kilonova.db.cell.tables import (
    leftover_aggregates,
    leftover_flavors,
    leftover_networks,
    leftover_others,
    leftover_placement,
    leftover_security_groups,
    shadow,
)
from kilonova.db.cell.tables.metadata import METADATA

PARTS = (
    leftover_aggregates,
    leftover_flavors,
    leftover_networks,
    leftover_others,
    leftover_placement,
    leftover_security_groups,
)

shadow.declare()

__all__ = ["METADATA", "PARTS"]
