"""Pages of servers from all cells.

Build requests come first, then the cells' servers merged by their sort keys. Each cell is asked once for a page and
once for the parts of those of its servers that made it into the merged one.
"""

from __future__ import annotations

import functools
import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from kilonova.api.paging import Page
from kilonova.api.servers import find, reading
from kilonova.api.services import Services
from kilonova.contract import exceptions
from kilonova.db.api import build_requests, instance_mappings
from kilonova.db.cell import instance_filters, instance_parts, instances
from kilonova.db.cells import Cell, CellDown
from kilonova.db.outcomes import InvalidFilterError, InvalidSortKeyError
from kilonova.wire.http.call import Call
from kilonova.wire.http.faults import bad_request

Record = dict[str, Any]
Sort = Sequence[tuple[str, str]]
_EXACT: Final = frozenset(
    {"project_id", "user_id", "image_ref", "vm_state", "instance_type_id", "uuid", "task_state", "host", "locked"}
)
_NOT_OF_REQUESTS: Final = frozenset({"deleted", "cleaned", "hidden", "soft_deleted", "ip", "ip6"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """What is asked for. ``filters`` are those of `kilonova.db.cell.instance_filters`."""

    filters: Mapping[str, Any]
    sort: Sort
    page: Page
    parts: Sequence[str] = ()
    columns: Sequence[str] = reading.COLUMNS


@dataclass(slots=True)
class Listed:
    """The servers of a page, and the cells that did not answer."""

    records: list[Record] = field(default_factory=list)
    down: list[str] = field(default_factory=list)


def servers(call: Call[Services], query: Query) -> Listed:
    """One page. Raises `Fault` 400 for a marker that names no server, a filter or a sort key that makes no sense."""
    if query.page.limit == 0:
        return Listed()
    marker = query.page.marker
    try:
        requested, marker = _requested(call, query, marker)
    except InvalidFilterError as error:
        raise bad_request(str(error)) from None
    rest = query.page.limit - len(requested)
    if rest <= 0:
        return Listed(requested[: query.page.limit])
    listed = _from_cells(call, query, rest, marker)
    known = {record["uuid"] for record in requested}
    listed.records = requested + [record for record in listed.records if record["uuid"] not in known]
    return listed


# ---------------------------------------------------------------- build requests


def _requested(call: Call[Services], query: Query, marker: str | None) -> tuple[list[Record], str | None]:
    """Matching build requests behind the marker, and the marker if it is not among them."""
    filters = query.filters
    if filters.get("ip") or filters.get("ip6") or filters.get("deleted"):
        return [], marker
    rows = call.services.cells.api.query(build_requests.build_request_list, project_id=filters.get("project_id"))
    found = sorted_records([find.of_build_request(row) for row in rows], query.sort)
    if marker is not None:
        position = next((i for i, record in enumerate(found) if record["uuid"] == marker), None)
        if position is None:
            return [], marker
        found, marker = found[position + 1 :], None
    return [record for record in found if matches(record, filters)], marker


def matches(record: Record, filters: Mapping[str, Any]) -> bool:
    """Whether the record of a build request passes the filters."""
    return all(_passes(record, name, value) for name, value in filters.items() if name not in _NOT_OF_REQUESTS)


def _passes(record: Record, name: str, wanted: Any) -> bool:
    if name in _TAG_TESTS:
        return _TAG_TESTS[name](set(wanted), set(record["tags"]))
    if name == "changes-since":
        return bool((record["updated_at"] or record["created_at"]) >= wanted)
    if name == "changes-before":
        return bool((record["updated_at"] or record["created_at"]) <= wanted)
    if name in ("metadata", "system_metadata"):
        return all(record[name].get(key) == value for key, value in wanted.items())
    value = record.get(name)
    if name in _EXACT:
        return value in wanted if isinstance(wanted, (list, tuple, set)) else value == wanted
    return value is not None and instance_filters.matcher(name, wanted).search(str(value)) is not None


_TAG_TESTS: Final = {
    "tags": lambda wanted, tags: wanted <= tags,
    "tags-any": lambda wanted, tags: bool(wanted & tags),
    "not-tags": lambda wanted, tags: not wanted <= tags,
    "not-tags-any": lambda wanted, tags: not wanted & tags,
}


# ---------------------------------------------------------------- cells


def _from_cells(call: Call[Services], query: Query, limit: int, marker: str | None) -> Listed:
    cells = call.services.cells
    start = None if marker is None else _marker(call, marker, query.sort)

    def page(cell: Cell) -> list[Record]:
        with cell.database.read() as tx:
            return instances.instance_list(tx, query.filters, query.sort, limit, start, columns=query.columns)

    try:
        answers = cells.scatter(page)
    except (InvalidFilterError, InvalidSortKeyError) as error:
        raise bad_request(str(error)) from None
    pages = {uuid: rows for uuid, rows in answers.items() if not isinstance(rows, CellDown)}
    down = [uuid for uuid, rows in answers.items() if isinstance(rows, CellDown)]
    if down and not call.services.conf.api.list_records_by_skipping_down_cells:
        raise exceptions.NovaException(f"{len(down)} cells do not answer, so servers cannot be listed.")
    merged = merge(pages, query.sort, limit)
    _attach(call, merged, query.parts)
    return Listed([record for _, record in merged], down)


def merge(pages: Mapping[str, list[Record]], sort: Sort, limit: int) -> list[tuple[str, Record]]:
    """The first ``limit`` records of all cells with the uuid of their cell; a server that two cells have, once."""
    streams = [[(uuid, record) for record in rows] for uuid, rows in pages.items()]
    order = _order(sort)
    seen: set[str] = set()
    merged: list[tuple[str, Record]] = []
    for uuid, record in heapq.merge(*streams, key=lambda entry: order(entry[1])):
        if record["uuid"] in seen:
            continue
        seen.add(record["uuid"])
        merged.append((uuid, record))
        if len(merged) == limit:
            break
    return merged


def sorted_records(records: Iterable[Record], sort: Sort) -> list[Record]:
    return sorted(records, key=_order(sort))


def _order(sort: Sort) -> Any:
    """A sort key over several columns with directions; None is smallest, as in the databases."""

    def compare(left: Record, right: Record) -> int:
        for name, direction in sort:
            a, b = left.get(name), right.get(name)
            if a == b:
                continue
            smaller = a is None or (b is not None and a < b)
            return -1 if smaller == (direction == "asc") else 1
        return 0

    return functools.cmp_to_key(compare)


def _marker(call: Call[Services], uuid: str, sort: Sort) -> Mapping[str, Any]:
    """The sort values of the marker, wherever it is. Raises `Fault` 400."""
    cells = call.services.cells
    mapping = cells.api.query(instance_mappings.instance_mapping_get, uuid)
    if mapping is not None and mapping["cell_uuid"] is not None:
        names = [name for name, _ in instances.complete_sort(sort)]
        with cells.cell(mapping["cell_uuid"]).database.read() as tx:
            row = instances.instance_get(tx, uuid, deleted_too=True, columns=names)
        if row is not None:
            return row
    raise bad_request(f"marker [{uuid}] not found")


def _attach(call: Call[Services], merged: Sequence[tuple[str, Record]], parts: Sequence[str]) -> None:
    """Read the parts of the page's records, cell by cell."""
    by_cell: dict[str, list[Record]] = {}
    for uuid, record in merged:
        by_cell.setdefault(uuid, []).append(record)
    if not parts or not by_cell:
        return
    cells = call.services.cells

    def read(cell: Cell) -> None:
        with cell.database.read() as tx:
            instance_parts.attach(tx, by_cell[cell.uuid], parts)

    asked = [cells.cell(uuid) for uuid in by_cell]
    answers = [cells.ask(read, asked[0])] if len(asked) == 1 else list(cells.scatter(read, asked).values())
    if any(isinstance(answer, CellDown) for answer in answers):
        raise exceptions.CellTimeout()
