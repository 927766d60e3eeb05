"""Where the members of a server group are, and where those go that are on no host yet.

Two that choose at once do not see each other in the cells. So whoever has chosen says so in `kn_group_host`, in a turn
of the group: the first one has its hosts, the next one is told who is in the way.
"""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec
import sqlalchemy as sa

from kilonova.contract.states import VM
from kilonova.db import flows, query, turns
from kilonova.db.api import group_placement
from kilonova.db.cell import host_changes
from kilonova.db.cells import CELL0_UUID, Cell, CellDown, Cells
from kilonova.db.engine import Database, Tx
from kilonova.db.turn_tables import KN_GROUP_HOST

AFFINITY: Final = "affinity"
ANTI_AFFINITY: Final = "anti-affinity"

_C = KN_GROUP_HOST.c
_TIMEOUT: Final = 10.0


class Members(msgspec.Struct, frozen=True):
    """A group as it was when it was looked at. `hosts`: {member: host}, those that are under way among them.

    `ended`: members that go nowhere any more, though they may have said where they go.
    """

    uuid: str
    policy: str | None
    rules: Mapping[str, str]
    uuids: frozenset[str]
    hosts: Mapping[str, str]
    under_way: frozenset[str]
    ended: frozenset[str]

    @property
    def max_per_host(self) -> int:
        return int(self.rules.get("max_server_per_host", 1))


class CellUnknownError(Exception):
    """A cell with members does not answer, so nobody knows where they are."""


def members_of(cells: Cells, instance_uuid: str) -> Members | None:
    """The group of a server, None for a server without one. Two statements in the API database and one in each cell
    that has members. Raises CellUnknownError.
    """
    placement = cells.api.query(_placement, cells.api, instance_uuid)
    if placement is None:
        return None
    found, said = placement
    living: Mapping[str, str | None] = found["members"]
    rows = _rows(cells, living)
    hosts = {uuid: row["host"] for uuid, row in rows.items() if row["host"] is not None}
    gone = said.keys() - living.keys()
    failed = {uuid for uuid, cell in living.items() if cell is not None and not _goes_on(rows.get(uuid))}
    under_way = said.keys() - gone - failed - hosts.keys()
    hosts |= {uuid: said[uuid] for uuid in under_way}
    return Members(
        found["uuid"], found["policy"], found["rules"], frozenset(living), hosts, frozenset(under_way),
        frozenset(gone | failed),
    )  # fmt: skip


def _placement(tx: Tx, api: Database, instance_uuid: str) -> tuple[query.Row, Mapping[str, str]] | None:
    """The group of a server, and where its members say they go."""
    found = group_placement.group_placement_get(tx, instance_uuid)
    if found is None:
        return None
    return found, _said(tx, found["uuid"]) if _is_there(api, tx) else {}


def _goes_on(row: query.Row | None) -> bool:
    """Whether a member that is in a cell is on a host, or comes to one."""
    return row is not None and (row["host"] is not None or row["vm_state"] == VM.BUILDING)


def _rows(cells: Cells, members: Mapping[str, str | None]) -> dict[str, query.Row]:
    """What the cells know of the members. Those in cell0 found no host and are left out."""
    by_cell: dict[str, list[str]] = {}
    for uuid, cell in members.items():
        if cell is not None and cell != CELL0_UUID:
            by_cell.setdefault(cell, []).append(uuid)

    def read(cell: Cell) -> list[query.Row]:
        return cell.database.query(host_changes.instance_places, by_cell[cell.uuid])

    asked = [cell for cell in cells.all(include_cell0=False) if cell.uuid in by_cell]
    found: dict[str, query.Row] = {}
    for answer in cells.scatter(read, asked, timeout=_TIMEOUT).values():
        if isinstance(answer, CellDown):
            raise CellUnknownError(answer.reason)
        found |= {row["uuid"]: row for row in answer}
    return found


def take(cells: Cells, members: Members, wanted: Mapping[str, str]) -> set[str]:
    """Say that these members go to these hosts; gives those that are in the way, and then nothing was said.

    Only for the policies that must hold.
    """
    if members.policy not in (AFFINITY, ANTI_AFFINITY) or not wanted or cells.api not in _HAVE_IT:
        return set()
    return turns.run_in_turn(cells.api, turns.of_group(members.uuid), _take, members, wanted)


def forget(cells: Cells, instance_uuids: Iterable[str]) -> None:
    """These go where they said they would no more."""
    cells.api.run(_forget, list(instance_uuids))


def group_hosts_forget(tx: Any, before_ms: int, limit: int = 1000) -> int:
    """Remove what was said before a time: who said it is on a host by now, or nowhere; returns how many."""
    uuids = list(tx.execute(sa.select(_C.instance_uuid).where(_C.updated_at < before_ms).limit(limit)).scalars())
    if not uuids:
        return 0
    return int(
        tx.execute(KN_GROUP_HOST.delete().where(_C.instance_uuid.in_(uuids), _C.updated_at < before_ms)).rowcount
    )


def _take(tx: Any, members: Members, wanted: Mapping[str, str]) -> set[str]:
    turns.turn_take(tx, turns.of_group(members.uuid))
    # Who was chosen for since the group was looked at is among those that have said so.
    others = {uuid: host for uuid, host in _said(tx, members.uuid).items() if uuid not in members.ended}
    others |= {uuid: host for uuid, host in members.hosts.items() if uuid not in members.under_way}
    for uuid in wanted:
        others.pop(uuid, None)
    if found := in_the_way(members, others, wanted):
        return found
    _forget(tx, list(wanted))
    now = flows.now_ms()
    rows = [
        {"instance_uuid": uuid, "group_uuid": members.uuid, "host": host, "updated_at": now}
        for uuid, host in wanted.items()
    ]
    query.insert_many(tx, KN_GROUP_HOST, rows)
    return set()


def in_the_way(members: Members, others: Mapping[str, str], wanted: Mapping[str, str]) -> set[str]:
    """Pure: which of the others make it wrong that the wanted ones go to their hosts."""
    hosts = set(wanted.values())
    if members.policy == AFFINITY:
        there = set(others.values())
        return set() if not there or hosts <= there else {uuid for uuid, host in others.items() if host not in hosts}
    total = Counter([*others.values(), *wanted.values()])
    full = {host for host in hosts if total[host] > members.max_per_host}
    return {uuid for uuid, host in others.items() if host in full}


_HAVE_IT: Final[weakref.WeakSet[Database]] = weakref.WeakSet()


def _is_there(database: Database, tx: Any) -> bool:
    """Whether the table is there: a scheduler of ours may be the only thing of ours in a cloud of Nova's."""
    if database not in _HAVE_IT and sa.inspect(tx).has_table(KN_GROUP_HOST.name):
        _HAVE_IT.add(database)
    return database in _HAVE_IT


def _said(tx: Any, group_uuid: str) -> dict[str, str]:
    return query.pairs(tx, sa.select(_C.instance_uuid, _C.host).where(_C.group_uuid == group_uuid))


def _forget(tx: Any, instance_uuids: list[str]) -> None:
    tx.execute(KN_GROUP_HOST.delete().where(_C.instance_uuid.in_(instance_uuids)))
