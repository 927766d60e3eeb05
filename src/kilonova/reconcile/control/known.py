"""Does the record explain what another service holds for a server?"""

from __future__ import annotations

import dataclasses
import datetime
import enum
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Protocol

from kilonova.contract.states import VM
from kilonova.db import flows
from kilonova.db.api import build_requests, instance_mappings
from kilonova.db.cell import explanations
from kilonova.db.cells import CELL0_UUID, CellDown, Cells

_SLICE = 400


class Record(Protocol):
    """Whoever has the databases."""

    @property
    def cells(self) -> Cells: ...


class World(Record, Protocol):
    """What the loops work with (conductor/world.py)."""

    conf: Any
    clients: Any
    host: str

    def place(self, cell_uuid: str) -> Any: ...

    def compute(self, place: Any) -> Any: ...


class Standing(enum.StrEnum):
    """EXPLAINED: leave it. FAILED: an ERROR server without host that never ran. GONE: the record of its end is there.

    FOREIGN: nothing here ever knew it; it may be somebody else's. UNSURE: the cell that knows does not answer.
    """

    EXPLAINED = "explained"
    FAILED = "failed"
    GONE = "gone"
    FOREIGN = "foreign"
    UNSURE = "unsure"


@dataclasses.dataclass
class Traces:
    """What was found of one uuid."""

    servers: list[Mapping[str, Any]] = dataclasses.field(default_factory=list)
    in_cell0: bool = False
    migration: bool = False
    stranded: bool = False
    """A migration whose server has ended."""
    build_request: bool = False
    active_flow: bool = False
    past_flow: bool = False
    mapping: Mapping[str, Any] | None = None
    cell_down: bool = False

    @property
    def living(self) -> list[Mapping[str, Any]]:
        """More than one where a record was left in a cell that the server is not mapped to (unmapped_records.py)."""
        return [each for each in self.servers if not each["deleted"]]

    @property
    def born(self) -> datetime.datetime | None:
        """When the server's record was made (naive UTC)."""
        return min((each["created_at"] for each in self.servers if each["created_at"]), default=None)


def judge(traces: Traces) -> Standing:
    """Pure: from traces to standing."""
    if traces.build_request or traces.active_flow or (traces.migration and not traces.stranded):
        return Standing.EXPLAINED
    living = traces.living
    if living:
        sure = traces.in_cell0 and len(living) == 1
        return Standing.FAILED if all(_never_ran(each, sure) for each in living) else Standing.EXPLAINED
    if traces.cell_down:
        return Standing.UNSURE
    known = traces.servers or traces.mapping is not None or traces.past_flow or traces.stranded
    return Standing.GONE if known else Standing.FOREIGN


def _never_ran(server: Mapping[str, Any], in_cell0: bool) -> bool:
    if in_cell0:
        return True
    ended = server["vm_state"] == VM.ERROR and server["task_state"] is None
    return bool(ended and server["host"] is None and server["launched_at"] is None)


def look(world: Record, uuids: Collection[str]) -> dict[str, Traces]:
    """Traces of each uuid, by a constant number of statements per slice and database."""
    found: dict[str, Traces] = {}
    wanted = sorted(set(uuids))
    for start in range(0, len(wanted), _SLICE):
        found |= _look(world, wanted[start : start + _SLICE])
    return found


def standing(world: Record, uuid: str) -> Standing:
    """One uuid, looked at just now."""
    return judge(look(world, [uuid])[uuid])


def _look(world: Record, uuids: list[str]) -> dict[str, Traces]:
    # In this order: a server is in its cell before its build request is gone, so it is seen in one of them.
    found: dict[str, Traces] = defaultdict(Traces)
    for uuid in uuids:
        found[uuid] = Traces()
    _ask_api(world, uuids, found)
    answers = world.cells.scatter(lambda cell: cell.database.query(_ask_cell, uuids))
    down = {uuid for uuid, answer in answers.items() if isinstance(answer, CellDown)}
    for cell_uuid, answer in answers.items():
        if not isinstance(answer, CellDown):
            _note(answer, found, in_cell0=cell_uuid == CELL0_UUID)
    if down:
        for traces in found.values():
            cell = traces.mapping["cell_uuid"] if traces.mapping else None
            traces.cell_down = cell is None or cell in down
    return dict(found)


def _ask_api(world: Record, uuids: list[str], found: dict[str, Traces]) -> None:
    def look(tx: Any) -> None:
        for uuid in build_requests.build_requests_among(tx, uuids):
            found[uuid].build_request = True
        for row in instance_mappings.instance_mapping_list(tx, uuids):
            found[row["instance_uuid"]].mapping = row
        _note_flows(flows.active_subjects(tx, uuids), flows.known_subjects(tx, uuids), found)

    world.cells.api.query(look)


def _ask_cell(tx: Any, uuids: list[str]) -> tuple[Any, ...]:
    return (
        explanations.server_traces(tx, uuids),
        explanations.migrations(tx, uuids),
        flows.active_subjects(tx, uuids),
        flows.known_subjects(tx, uuids),
    )


def _note(answer: tuple[Any, ...], found: dict[str, Traces], in_cell0: bool) -> None:
    servers, migrations, running, known = answer
    for row in servers:
        found[row["uuid"]].servers.append(row)
        if in_cell0 and not row["deleted"]:
            found[row["uuid"]].in_cell0 = True
    for uuid, lives in migrations.items():
        # A move between cells has a record in both.
        found[uuid].stranded = not lives and (found[uuid].stranded or not found[uuid].migration)
        found[uuid].migration = True
    _note_flows(running, known, found)


def _note_flows(running: Iterable[str], known: Iterable[str], found: dict[str, Traces]) -> None:
    for uuid in running:
        found[uuid].active_flow = True
    for uuid in known:
        found[uuid].past_flow = True
