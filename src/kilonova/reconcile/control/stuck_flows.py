"""A flow whose undo failed again and again rests as `stuck`: after the grace time it may try again."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Any

from kilonova.db import flows
from kilonova.db.engine import Database
from kilonova.flow.store import FlowRow, State
from kilonova.reconcile.control.known import World
from kilonova.reconcile.loop import Loop, Suspect

_DAY_MS = 86_400_000


class StuckFlows(Loop):
    """Also forgets flows that ended more than [kilonova] flow_keep_days ago."""

    name = "stuck_flows"

    def __init__(self, world: World) -> None:
        self._world = world

    def _databases(self) -> list[Database]:
        cells = self._world.cells
        return [cells.api, *(cell.database for cell in cells.all())]

    def find(self) -> Iterable[tuple[Database, FlowRow]]:
        found = []
        before = time.time_ns() // 1_000_000 - self._world.conf.kilonova.flow_keep_days * _DAY_MS
        for database in self._databases():
            database.run(flows.purge, before)
            found += [(database, row) for row in database.query(flows.by_state, [State.STUCK])]
        return found

    def judge(self, found: Iterable[Any]) -> Sequence[Suspect]:
        return [
            Suspect(row.id, f"flow {row.op} of {row.subject_id} is stuck: {row.reason}", database)
            for database, row in found
        ]

    def repair(self, suspect: Suspect) -> None:
        suspect.data.run(flows.revive, suspect.key)
