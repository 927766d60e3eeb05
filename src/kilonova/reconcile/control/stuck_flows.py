"""A flow whose undo failed again and again rests as `stuck`: after the grace time it may try again."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

from kilonova.db import flows
from kilonova.db.cells import CellDown
from kilonova.db.engine import Database
from kilonova.flow.store import FlowRow, State
from kilonova.reconcile.control.known import World
from kilonova.reconcile.loop import Loop, Suspect


class StuckFlows(Loop):
    name = "stuck_flows"

    def __init__(self, world: World) -> None:
        self._world = world

    def find(self) -> Iterable[tuple[Database, FlowRow]]:
        cells = self._world.cells
        answers = cells.scatter(lambda cell: self._look(cell.database))
        of_cells = (answer for answer in answers.values() if not isinstance(answer, CellDown))
        return [*self._look(cells.api), *itertools.chain.from_iterable(of_cells)]

    def _look(self, database: Database) -> list[tuple[Database, FlowRow]]:
        return [(database, row) for row in database.query(flows.by_state, [State.STUCK])]

    def judge(self, found: Iterable[Any]) -> Sequence[Suspect]:
        return [
            Suspect(row.id, f"flow {row.op} of {row.subject_id} is stuck: {row.reason}", database)
            for database, row in found
        ]

    def repair(self, suspect: Suspect) -> None:
        suspect.data.run(flows.revive, suspect.key)
