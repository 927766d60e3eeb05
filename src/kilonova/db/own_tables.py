"""All tables of our own, and whether they are there beside Nova's.

A database that only Nova's commands have made lacks them; one that an older release of ours has made lacks some.
"""

from __future__ import annotations

import sqlalchemy as sa

from kilonova.db.cells import Cells
from kilonova.db.engine import Database, Tx
from kilonova.db.turn_tables import METADATA

__all__ = ["METADATA", "OwnTablesMissingError", "require"]


class OwnTablesMissingError(Exception):
    """Says in which database, and what makes them."""


def require(cells: Cells) -> None:
    """Raises OwnTablesMissingError for the first database of the configuration that lacks them.

    A conductor without them would take messages off the bus and lose them.
    """
    if cells.has_api:
        _require(cells.api, "api_db sync")
    _require(cells.own, "db sync")


def require_api(cells: Cells) -> None:
    """The same for the API database: an API without them would answer every build with an error."""
    _require(cells.api, "api_db sync")


def _require(database: Database, command: str) -> None:
    def look(tx: Tx) -> list[str]:
        inspector = sa.inspect(tx)
        return [name for name in METADATA.tables if not inspector.has_table(name)]

    missing = database.query(look)
    if missing:
        raise OwnTablesMissingError(
            f"{database.name} has no table {missing[0]}: run nova-manage {command} of this release; "
            "it leaves Nova's tables as they are"
        )
