"""The snapshot's source: the databases of all cells and the API database."""

from __future__ import annotations

import datetime
import logging
from collections.abc import Mapping

from kilonova.db.api import aggregates
from kilonova.db.cell import host_changes
from kilonova.db.cells import Cell, CellDown, Cells
from kilonova.scheduler.snapshot.cache import Tail
from kilonova.scheduler.snapshot.host import Aggregate

LOG = logging.getLogger(__name__)

PATIENCE = 10.0
"""Seconds to wait for a cell; its hosts stay as they were seen last."""


class DatabaseSource:
    """Three statements per cell and look, in all cells at once."""

    def __init__(self, cells: Cells) -> None:
        self._cells = cells

    def cells(self) -> Mapping[str, bool]:
        return {cell.uuid: not cell.disabled for cell in self._cells.all(include_cell0=False)}

    def tails(self, since: datetime.datetime | None) -> Mapping[str, Tail]:
        asked = [cell for cell in self._cells.all(include_cell0=False) if not cell.disabled]

        def read(cell: Cell) -> Tail:
            services, nodes, instances = cell.database.query(host_changes.host_changes, since)
            return Tail(services, nodes, instances)

        found: dict[str, Tail] = {}
        for uuid, answer in self._cells.scatter(read, asked, timeout=PATIENCE).items():
            if isinstance(answer, CellDown):
                LOG.warning("cell %s does not answer, its hosts stay as last seen: %s", uuid, answer.reason)
            else:
                found[uuid] = answer
        return found

    def aggregates(self) -> list[Aggregate]:
        rows = self._cells.api.query(aggregates.aggregate_list)
        return [Aggregate.of(row["id"], row["uuid"], row["name"], row["hosts"], row["metadata"]) for row in rows]
