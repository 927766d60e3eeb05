"""A server has a record in a cell that it is not mapped to: lists and quotas count it, nobody can show or delete it.

A conductor of a peer's that dies between its record in a cell and the mapping leaves one behind: whoever builds the
server later, or gives it up, may do so in another cell, and its user may have deleted it. What the server holds is not
this record's; what nobody holds any more is let go of by the loops for that.
"""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Iterable, Sequence
from typing import Any

from kilonova.base import clock
from kilonova.contract.states import VM
from kilonova.db.cell import explanations, instances
from kilonova.db.cells import Cell, CellDown
from kilonova.db.query import Row
from kilonova.reconcile.control import known
from kilonova.reconcile.control.known import Traces, World
from kilonova.reconcile.loop import Loop, Suspect

PAGE = 500
"""Servers that never ran whose mappings are looked at in one pass; the next pass goes on behind them."""

AGAIN = 50
"""Suspects of the last pass that are looked at again."""


@dataclasses.dataclass(frozen=True)
class Found:
    cell: str
    uuid: str
    traces: Traces


class UnmappedRecords(Loop):
    name = "unmapped_records"

    def __init__(self, world: World) -> None:
        self._world = world

    def find(self) -> Iterable[Found]:
        """Records of servers that no host has or had, cell by cell; others have a mapping, or were lost with many."""
        since = clock.naive_now() - datetime.timedelta(seconds=self._world.conf.kilonova.reconcile_grace)
        again = [each.data.uuid for each in self.suspected if each.repairable][:AGAIN]
        answers = self._world.cells.scatter(lambda cell: cell.database.query(_look, since, self.place, again))
        there = [
            (cell, row["uuid"])
            for cell, answer in answers.items()
            if not isinstance(answer, CellDown)
            for row in answer
        ]
        # A page is full where a cell's is: what lies behind its end comes with the next one.
        uuids = sorted({uuid for _, uuid in there if self.place is None or uuid > self.place})[:PAGE]
        end = uuids[-1] if len(uuids) == PAGE else None
        chosen = [(cell, uuid) for cell, uuid in there if end is None or uuid <= end or uuid in again]
        self.place = end
        traces = known.look(self._world, {uuid for _, uuid in chosen})
        return [Found(cell, uuid, traces[uuid]) for cell, uuid in chosen]

    def judge(self, found: Iterable[Found]) -> Sequence[Suspect]:
        return [
            Suspect(f"{each.cell} {each.uuid}", harm, each, is_settled(each.traces))
            for each in found
            if (harm := harm_of(each)) is not None
        ]

    def repair(self, suspect: Suspect) -> None:
        found: Found = suspect.data
        now = Found(found.cell, found.uuid, known.look(self._world, [found.uuid])[found.uuid])
        if harm_of(now) is None or not is_settled(now.traces):
            return
        cell: Cell = self._world.cells.cell(found.cell)
        cell.database.run(_remove if _is_elsewhere(now.traces) else _end, found.uuid)


def harm_of(found: Found) -> str | None:
    """What is wrong with a record; None when it may become, or is, the server's. Pure."""
    traces = found.traces
    if traces.build_request or traces.active_flow or traces.cell_down:
        return None
    place = traces.mapping["cell_uuid"] if traces.mapping is not None else None
    if place == found.cell:
        return None
    where = f"cell {place}" if place is not None else "no cell"
    return f"server {found.uuid} has a record in cell {found.cell}, and is mapped to {where}"


def is_settled(traces: Traces) -> bool:
    """Whether it is known where the server is, or that it has ended. A mapping that is not there may be lost. Pure."""
    return len(traces.servers) > 1 if _is_elsewhere(traces) else traces.mapping is not None or traces.past_flow


def _is_elsewhere(traces: Traces) -> bool:
    return traces.mapping is not None and traces.mapping["cell_uuid"] is not None


def _look(tx: Any, since: datetime.datetime, after: str | None, again: Sequence[str]) -> list[Row]:
    page = explanations.never_ran(tx, since, after=after, limit=PAGE)
    if not again:
        return page
    return page + [each for each in explanations.never_ran(tx, since, among=again) if each not in page]


def _remove(tx: Any, uuid: str) -> None:
    """A record that says "deleted" would be one of a server that is there."""
    if _holds(tx, uuid):
        instances.instance_purge(tx, uuid)


def _end(tx: Any, uuid: str) -> None:
    if _holds(tx, uuid):
        values = {"vm_state": VM.DELETED, "task_state": None, "power_state": 0, "terminated_at": clock.naive_now()}
        instances.instance_update(tx, uuid, values)
        instances.instance_destroy(tx, uuid)


def _holds(tx: Any, uuid: str) -> bool:
    """Whether it is still so; nobody changes it before the transaction ends."""
    held = instances.instance_hold(tx, uuid, ("uuid",))
    return held is not None and bool(explanations.never_ran(tx, clock.naive_now(), among=[uuid]))
