"""Servers of two cells are each seen once, whatever they are sorted by, on MariaDB and PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.real.database_fixtures import database_server, new_databases
from tests.unit.db.orders import check_every_order, walk

from kilonova.db.cells import Cell
from kilonova.db.engine import Database
from kilonova.db.migrations import sync

__all__ = ["database_server"]

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def cells(database_server: str) -> Iterator[list[Database]]:
    with new_databases(database_server, ("zero", "one")) as urls:
        made = [Database(url) for url in urls]
        for database in made:
            sync.sync_main(database)
        yield made
        for database in made:
            database.dispose()


def test_r19_each_server_is_seen_once_in_every_order(cells: list[Database]) -> None:
    check_every_order(cells)
    # Sorted as the one database would sort them all: on MariaDB by Nova's own order, `a` beside `A`.
    both = [Cell(n, f"cell{n}", None, "none:///", database, False) for n, database in enumerate(cells)]
    found = walk(both, [("display_name", "asc"), ("uuid", "asc")], 5, ("uuid", "display_name"))
    letters = [one["display_name"] for one in found if one["display_name"] in {"a", "A", "b", "B", "c", "D", "Z"}]
    if cells[0].dialect == "mysql":
        assert [letter.lower() for letter in letters] == sorted(letter.lower() for letter in letters)
    else:
        assert letters == sorted(letters)
