"""A build that nobody drives: a build request, or a server in BUILD, without a flow.

Work that a peer's conductor took has no flow, so a build request is given up only after [kilonova] build_deadline, and
a server in BUILD is at first only watched: its host may be at work. A record in a cell that the server is not mapped to
is not its record (unmapped_records.py): whoever gave that build up would take from the server what it holds.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from typing import Any

from kilonova.base import clock
from kilonova.contract import context
from kilonova.contract.states import VM, Task
from kilonova.db import flows
from kilonova.db.api import build_requests, instance_mappings
from kilonova.db.cell import explanations
from kilonova.db.cells import CellDown
from kilonova.db.query import Row
from kilonova.flow import offers
from kilonova.reconcile.control import pages
from kilonova.reconcile.control.known import World
from kilonova.reconcile.loop import Loop, Suspect


class UndrivenBuilds(Loop):
    name = "undriven_builds"

    def __init__(self, world: World) -> None:
        self._world = world

    def find(self) -> Iterable[tuple[str | None, Row]]:
        """(cell or None, build request or server), those with a flow left out."""
        given_up = clock.naive_now() - datetime.timedelta(seconds=self._world.conf.kilonova.build_deadline)
        requests = self._world.cells.api.query(_requests_undriven, given_up)
        found: list[tuple[str | None, Row]] = [(None, each) for each in requests]
        since = clock.naive_now() - datetime.timedelta(seconds=self._world.conf.kilonova.reconcile_grace)
        answers = self._world.cells.scatter(
            lambda cell: [] if cell.is_cell0 else cell.database.query(_building_undriven, since)
        )
        for cell, answer in answers.items():
            if not isinstance(answer, CellDown):
                ours = self._undriven_in(cell, [each["uuid"] for each in answer])
                found += [(cell, each) for each in answer if each["uuid"] in ours]
        return found

    def _undriven_in(self, cell: str, uuids: list[str]) -> set[str]:
        """Those that are mapped to the cell and that no flow of the API database drives."""
        if not uuids:
            return set()
        mappings = self._world.cells.api.query(instance_mappings.instance_mapping_list, uuids)
        return {each["instance_uuid"] for each in mappings if each["cell_uuid"] == cell} - self._driven(uuids)

    def _driven(self, uuids: list[str]) -> set[str]:
        return self._world.cells.api.query(flows.active_subjects, uuids) if uuids else set()

    def judge(self, found: Iterable[tuple[str | None, Row]]) -> Sequence[Suspect]:
        suspects = []
        for cell, row in found:
            if cell is not None:
                harm = f"server {row['uuid']} is in BUILD and nobody drives it"
                suspects.append(Suspect(row["uuid"], harm, (cell, row)))
            else:
                harm = f"build request of server {row['instance_uuid']} is old and nobody drives it"
                suspects.append(Suspect(row["instance_uuid"], harm, (None, row)))
        return suspects

    def repair(self, suspect: Suspect) -> None:
        cell, row = suspect.data
        ctxt = context.admin()
        if cell is None:
            reason = "nobody took the request in time"
            new = offers.burial_offer(ctxt, instance_uuid=suspect.key, project_id=row["project_id"], reason=reason)
            self._world.cells.api.run(flows.offer, new)
            return
        left = max(60.0, self._world.conf.kilonova.build_deadline - _age(row))
        new = offers.watch_offer(
            ctxt,
            instance_uuid=suspect.key,
            project_id=row["project_id"],
            host=row["host"],
            deadline_at=clock.seconds() + left,
        )
        self._world.cells.cell(cell).database.run(flows.offer, new)


def _requests_undriven(tx: Any, before: datetime.datetime) -> list[Row]:
    """Build requests of before a time that no flow drives."""

    def undriven(rows: list[Row]) -> list[Row]:
        active = flows.active_subjects(tx, [each["instance_uuid"] for each in rows])
        return [each for each in rows if each["instance_uuid"] not in active]

    return pages.first(lambda after: build_requests.build_request_old(tx, before, after=after), undriven)


def _building_undriven(tx: Any, since: datetime.datetime) -> list[Row]:
    def undriven(rows: list[Row]) -> list[Row]:
        active = flows.active_subjects(tx, [each["uuid"] for each in rows])
        return [each for each in rows if each["uuid"] not in active and each["task_state"] != Task.DELETING]

    return pages.first(lambda after: explanations.servers_in_state(tx, VM.BUILDING, since, after=after), undriven)


def _age(row: Row) -> float:
    made = clock.aware(row["created_at"])
    return (clock.now() - made).total_seconds() if made else 0.0
