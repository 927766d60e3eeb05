"""Pages of servers from all cells.

Build requests come first, then the cells' servers merged by their sort keys (merging.py). Each cell is asked for a part
of the page at a time, and once for what hangs on those of its servers that made it into the page.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from kilonova.api import errors
from kilonova.api.paging import Page
from kilonova.api.servers import find, merging, reading
from kilonova.api.services import Services
from kilonova.contract import exceptions
from kilonova.db import patterns
from kilonova.db.api import build_requests, cell_mappings, instance_mappings
from kilonova.db.cell import instance_parts, instances
from kilonova.db.cells import Cell, CellDown
from kilonova.db.outcomes import InvalidFilterError, InvalidSortKeyError
from kilonova.wire.http.call import Call
from kilonova.wire.http.faults import bad_request

Record = merging.Record
Sort = merging.Sort
_SMALLEST_BATCH: Final = 100
_EXACT: Final = frozenset(
    {"project_id", "user_id", "image_ref", "vm_state", "instance_type_id", "uuid", "task_state", "host", "locked"}
)
_NOT_OF_REQUESTS: Final = frozenset({"deleted", "cleaned", "hidden", "soft_deleted", "ip", "ip6"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """What is asked for. ``filters`` are those of `kilonova.db.cell.instance_filters`.

    ``partly``: servers of cells that do not answer are shown as far as they are known elsewhere.
    """

    filters: Mapping[str, Any]
    sort: Sort
    page: Page
    parts: Sequence[str] = ()
    columns: Sequence[str] = reading.COLUMNS
    partly: bool = False


@dataclass(slots=True)
class Listed:
    """The servers of a page, and the cells that did not answer."""

    records: list[Record] = field(default_factory=list)
    down: list[str] = field(default_factory=list)


def servers(call: Call[Services], query: Query) -> Listed:
    """One page. Raises `Fault` 400 for a marker that names no server, a filter or a sort key that makes no sense."""
    if query.page.limit == 0:
        return Listed()
    # An empty marker is none here, while other lists do not find it: as in Nova.
    marker = query.page.marker or None
    try:
        requested, marker = _requested(call, query, marker)
    except InvalidFilterError as error:
        raise bad_request(str(error)) from None
    rest = query.page.limit - len(requested)
    if rest <= 0:
        return Listed(requested[: query.page.limit])
    known = {record["uuid"] for record in requested}
    # A server that became a record between the two looks is there twice; without it the page has to be full still.
    listed = _from_cells(call, query, rest + len(known), marker)
    others = [record for record in listed.records if record["uuid"] not in known]
    listed.records = requested + others[:rest]
    return listed


# ---------------------------------------------------------------- build requests


def _requested(call: Call[Services], query: Query, marker: str | None) -> tuple[list[Record], str | None]:
    """Matching build requests behind the marker, and the marker if it is not among them."""
    filters = query.filters
    if filters.get("ip") or filters.get("ip6") or filters.get("deleted"):
        return [], marker
    rows = call.services.cells.api.query(build_requests.build_request_list, project_id=filters.get("project_id"))
    found = merging.sorted_records([find.of_build_request(row) for row in rows], query.sort)
    if marker is not None:
        position = next((i for i, record in enumerate(found) if record["uuid"] == marker), None)
        if position is None:
            # One that was a request on the page before, and is a record by now, looks like one that was a record then:
            # the requests behind it are left out, as by Nova. Showing them would show them on every page of records.
            return [], marker
        found, marker = found[position + 1 :], None
    # MySQL and MariaDB match patterns without regard to case.
    any_case = call.services.cells.api.dialect == "mysql"
    return [record for record in found if matches(record, filters, any_case=any_case)], marker


def matches(record: Record, filters: Mapping[str, Any], *, any_case: bool = False) -> bool:
    """Whether the record of a build request passes the filters."""
    asked = {name: value for name, value in filters.items() if name not in _NOT_OF_REQUESTS}
    return all(_passes(record, name, value, any_case) for name, value in asked.items())


def _passes(record: Record, name: str, wanted: Any, any_case: bool) -> bool:
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
    return value is not None and patterns.matcher(name, wanted, any_case=any_case).search(str(value)) is not None


_TAG_TESTS: Final = {
    "tags": lambda wanted, tags: wanted <= tags,
    "tags-any": lambda wanted, tags: bool(wanted & tags),
    "not-tags": lambda wanted, tags: not wanted <= tags,
    "not-tags-any": lambda wanted, tags: not wanted & tags,
}


# ---------------------------------------------------------------- cells


def _from_cells(call: Call[Services], query: Query, limit: int, marker: str | None) -> Listed:
    cells = _asked(call)
    start = None if marker is None else _marker(call, marker, query)

    def page(cell: Cell, after: Mapping[str, Any] | None, length: int) -> list[Record]:
        return cell.database.query(
            instances.instance_list, query.filters, query.sort, length, after, columns=query.columns
        )

    merger = merging.Merger(query.sort, limit, _batch(call, limit, len(cells)), start)
    try:
        while wanted := merger.wanted(cells):
            merger.add(call.services.cells.scatter(functools.partial(merger.ask, page), wanted))
    except (InvalidFilterError, InvalidSortKeyError) as error:
        raise bad_request(str(error)) from None
    if merger.down and not query.partly and not call.services.conf.api.list_records_by_skipping_down_cells:
        raise exceptions.NovaException(f"{len(merger.down)} cells do not answer, so servers cannot be listed.")
    _attach(call, merger.merged, query.parts)
    return Listed([record for _, record in merger.merged], merger.down)


def _asked(call: Call[Services]) -> list[Cell]:
    """The cells in which there may be servers of the caller."""
    cells = call.services.cells
    project = call.context.project_id
    if call.context.is_admin or project is None or not call.services.conf.api.instance_list_per_project_cells:
        return cells.all()
    own = cells.api.query(cell_mappings.cell_mapping_uuids_of_project, project)
    return [cell for cell in cells.all() if cell.uuid in own]


def _batch(call: Call[Services], limit: int, cells: int) -> int:
    """How many servers to ask of each cell at a time."""
    if cells <= 1:
        return limit
    conf = call.services.conf.api
    fixed = conf.instance_list_cells_batch_strategy == "fixed"
    size = conf.instance_list_cells_batch_fixed_size if fixed else int(limit / cells * 1.1)
    return max(min(size, limit), _SMALLEST_BATCH)


def _marker(call: Call[Services], uuid: str, query: Query) -> Mapping[str, Any]:
    """The sort values of the marker, wherever it is. Raises `Fault` 400.

    Where a page begins tells of the marker's values, so it has to be one of those whose servers are listed.
    """
    cells = call.services.cells
    mapping = cells.api.query(instance_mappings.instance_mapping_get, uuid)
    if mapping is not None and mapping["cell_uuid"] is not None and _owned(call, mapping, query.filters):
        names = [name for name, _ in instances.complete_sort(query.sort)]
        row = cells.cell(mapping["cell_uuid"]).database.query(
            instances.instance_get, uuid, deleted_too=True, columns=names
        )
        if row is not None:
            return row
    raise bad_request(f"marker [{uuid}] not found")


def _owned(call: Call[Services], mapping: Mapping[str, Any], filters: Mapping[str, Any]) -> bool:
    """Whether the server is of the project (for who has none: of the user) whose servers are asked for."""
    owner = next((name for name in ("project_id", "user_id") if name in filters), None)
    return call.context.is_admin or owner is None or mapping[owner] == filters[owner]


def _attach(call: Call[Services], merged: Sequence[tuple[str, Record]], parts: Sequence[str]) -> None:
    """Read the parts of the page's records, cell by cell."""
    by_cell: dict[str, list[Record]] = {}
    for uuid, record in merged:
        by_cell.setdefault(uuid, []).append(record)
    if not parts or not by_cell:
        return
    cells = call.services.cells

    def read(cell: Cell) -> None:
        cell.database.query(instance_parts.attach, by_cell[cell.uuid], parts)

    asked = [cells.cell(uuid) for uuid in by_cell]
    answers = [cells.ask(read, asked[0])] if len(asked) == 1 else list(cells.scatter(read, asked).values())
    if any(isinstance(answer, CellDown) for answer in answers):
        raise errors.no_answer()
