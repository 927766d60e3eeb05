"""Servers in two cells whose values are hard to sort, and pages of them merged as the API does it."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from kilonova.api.servers.merging import Merger
from kilonova.base import ids
from kilonova.contract.nouns.servers import SORT_KEYS
from kilonova.db.cell import instances
from kilonova.db.cell.tables import INSTANCES
from kilonova.db.cells import Cell
from kilonova.db.columns import INET_SMALL
from kilonova.db.engine import Database, Tx
from kilonova.db.sorting import Sort

TEXTS = (
    *("a", "B", "c", "D", "A", "b", "é", "E", "e", "ß", "ss", "_", "Z", "[", "a ", "a b", "a-b", "ab", "10", "9"),
    *("", None, "ﬁ", "İ", "x" * 250),
)
DAY = datetime.datetime(2024, 1, 1)
NOT_COLUMNS = {"deleted", "id", "uuid", "created_at", "cleaned"}


def values(number: int) -> dict[str, Any]:
    """Each column with another one's neighbour, so that no order is the same as another."""
    made: dict[str, Any] = {"uuid": ids.new_uuid(), "created_at": DAY + datetime.timedelta(seconds=number // 7)}
    for shift, name in enumerate(sorted(SORT_KEYS - NOT_COLUMNS - {"locked"} | {"locked"})):
        column = INSTANCES.c[name]
        text = TEXTS[(number * 3 + shift) % len(TEXTS)]
        made[name] = _value(column, number + shift, text)
    return made


def _value(column: sa.Column[Any], number: int, text: str | None) -> Any:
    kind = column.type
    if number % 6 == 0 and column.nullable:
        return None
    if isinstance(kind, sa.Enum):
        return ("owner", "admin")[number % 2]
    if kind is INET_SMALL:
        return ("10.0.0.2", "10.0.0.10", "fd00::1", "9.1.1.1")[number % 4]
    if isinstance(kind, sa.DateTime):
        return DAY + datetime.timedelta(seconds=number % 3)
    if isinstance(kind, sa.Boolean):
        return bool(number % 2)
    if isinstance(kind, sa.String):
        length = kind.length
        return text if text is None or length is None else text[:length]
    return number % 4


def fill(cells: Sequence[Database], count: int = 25) -> set[str]:
    """The servers, in turn in each cell; their uuids."""
    made = [values(number) for number in range(count)]
    for number, one in enumerate(made):
        cells[number % len(cells)].run(lambda tx, row: tx.execute(INSTANCES.insert().values(**row)), one)
    return {one["uuid"] for one in made}


def walk(cells: Sequence[Cell], sort: Sort, limit: int, columns: Sequence[str] = ("uuid",)) -> Iterator[dict[str, Any]]:
    """Every server that somebody sees who follows the markers."""
    marker: Mapping[str, Any] | None = None
    names = [name for name, _ in instances.complete_sort(sort)]

    def page(cell: Cell, after: Mapping[str, Any] | None, length: int) -> list[dict[str, Any]]:
        return cell.database.query(instances.instance_list, {}, sort, length, after, columns=columns)

    while True:
        merger = Merger(sort, limit, limit, marker)
        while wanted := merger.wanted(cells):
            merger.add({cell.uuid: merger.ask(page, cell) for cell in wanted})
        if not merger.merged:
            return
        yield from (record for _, record in merger.merged)
        home, last = merger.merged[-1]
        (cell,) = (one for one in cells if one.uuid == home)
        marker = cell.database.query(_marker, last["uuid"], names)


def _marker(tx: Tx, uuid: str, names: Sequence[str]) -> Mapping[str, Any] | None:
    return instances.instance_get(tx, uuid, deleted_too=True, columns=names)


def check_every_order(databases: Sequence[Database]) -> None:
    """Each server once, for every key, direction and size of a page."""
    cells = [Cell(n, f"cell{n}", None, "none:///", database, False) for n, database in enumerate(databases)]
    made = fill(databases)
    wrong = []
    for key in sorted(SORT_KEYS - {"cell_name"}):
        for direction in ("asc", "desc"):
            for limit in range(1, 6):
                sort = [(key, direction), *([("uuid", "asc")] if key != "uuid" else [])]
                seen = [record["uuid"] for record in walk(cells, sort, limit)]
                if len(seen) != len(made) or set(seen) != made:
                    wrong.append((key, direction, limit, len(seen), len(set(seen))))
    assert not wrong, wrong
