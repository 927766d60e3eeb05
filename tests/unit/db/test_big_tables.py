"""Each list query on ten thousand rows: a constant number of statements, and plans that go by indexes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.db import list_queries
from tests.unit.db.big_tables import API, CELL, fill
from tests.unit.db.conftest import copied
from tests.unit.db.list_queries import check_counts, check_plans

from kilonova.db.engine import Database

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def big(templates: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Database, Database]]:
    api, cell = copied(templates, tmp_path_factory.mktemp("big"))
    fill(api, API)
    fill(cell, CELL)
    yield api, cell
    api.dispose()
    cell.dispose()


def test_every_list_query_is_known() -> None:
    known = {*list_queries.API, *list_queries.CELL, *list_queries.HELPERS}
    assert list_queries.every_list() == known


def test_lists_go_by_indexes(big: tuple[Database, Database]) -> None:
    check_plans(big)


def test_much_takes_as_many_statements_as_little(templates: Path, tmp_path: Path) -> None:
    sizes = []
    for rows in (3, 40):
        folder = tmp_path / str(rows)
        folder.mkdir()
        api, cell = copied(templates, folder)
        fill(api, API, rows)
        fill(cell, CELL, rows)
        sizes.append((api, cell))
    check_counts(*sizes)
