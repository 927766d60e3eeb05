"""One page of the records of many cells, each sorted in itself."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from kilonova.db import sorting
from kilonova.db.cells import Cell, CellDown
from kilonova.db.sorting import Sort

Record = dict[str, Any]
Page = Callable[[Cell, Mapping[str, Any] | None, int], list[Record]]
"""A cell's records behind one (None: from its first on), at most so many."""


class Merger:
    """Collects batches of the cells until the page is full. ``merged`` has pairs of a cell's uuid and a record."""

    def __init__(self, sort: Sort, limit: int, batch: int, start: Mapping[str, Any] | None) -> None:
        self.merged: list[tuple[str, Record]] = []
        self.down: list[str] = []
        self._sort = sort
        self._limit = limit
        self._batch = batch
        self._start = start
        self._found: dict[str, list[Record]] = {}
        self._ended: set[str] = set()

    def wanted(self, cells: Iterable[Cell]) -> list[Cell]:
        """The cells that may have more records for the page."""
        return [cell for cell in cells if self._may_have_more(cell.uuid)]

    def ask(self, page: Page, cell: Cell) -> list[Record]:
        found = self._found.get(cell.uuid)
        return page(cell, found[-1] if found else self._start, self._batch)

    def add(self, answers: Mapping[str, list[Record] | CellDown]) -> None:
        """What cells answered; of one that does not answer (any more) nothing is shown."""
        for uuid, answer in answers.items():
            if isinstance(answer, CellDown):
                self.down.append(uuid)
                self._ended.add(uuid)
                self._found.pop(uuid, None)
                continue
            self._found.setdefault(uuid, []).extend(answer)
            if len(answer) < self._batch:
                self._ended.add(uuid)
        self.merged = merge(self._found, self._sort, self._limit)

    def _may_have_more(self, uuid: str) -> bool:
        if uuid in self._ended:
            return False
        if uuid not in self._found or len(self.merged) < self._limit:
            return True
        order = sorting.key(self._sort)
        used_up: bool = order(self._found[uuid][-1]) < order(self.merged[-1][1])
        return used_up


def merge(pages: Mapping[str, list[Record]], sort: Sort, limit: int) -> list[tuple[str, Record]]:
    """The first ``limit`` records of all cells with the uuid of their cell; a server that two cells have, once."""
    streams = [[(uuid, record) for record in rows] for uuid, rows in pages.items()]
    order = sorting.key(sort)
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
    return sorted(records, key=sorting.key(sort))
