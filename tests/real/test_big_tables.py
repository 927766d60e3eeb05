"""Plans of each list query on ten thousand rows on MariaDB and PostgreSQL."""

from __future__ import annotations

import pytest
from tests.real.database_fixtures import database_server, databases
from tests.unit.db.big_tables import API, CELL, fill
from tests.unit.db.list_queries import check_plans

from kilonova.db.engine import Database

__all__ = ["database_server", "databases"]

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]


def test_lists_go_by_indexes(databases: tuple[Database, Database]) -> None:
    api, cell = databases
    fill(api, API)
    fill(cell, CELL)
    check_plans(databases)
