"""Whether our tables are there beside Nova's. A database that only Nova's commands have made lacks them."""

from __future__ import annotations

import sqlalchemy as sa

from kilonova.db.cells import Cells
from kilonova.db.engine import Database
from kilonova.db.flow_tables import KN_FLOW


class OwnTablesMissingError(Exception):
    """Says in which database, and what makes them."""


def require(cells: Cells) -> None:
    """Raises OwnTablesMissingError for the first database of the configuration that lacks them.

    A conductor without them would take messages off the bus and lose them.
    """
    if cells.has_api:
        _require(cells.api, "api_db sync")
    _require(cells.own, "db sync")


def _require(database: Database, command: str) -> None:
    with database.read() as tx:
        if not sa.inspect(tx).has_table(KN_FLOW.name):
            raise OwnTablesMissingError(
                f"{database.name} has no table {KN_FLOW.name}: run nova-manage {command} of this release; "
                "it leaves Nova's tables as they are"
            )
