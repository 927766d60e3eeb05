"""Both databases against the contract: tables, revisions."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.contract import facts, table_sheets

from kilonova.db.engine import Database
from kilonova.db.migrations import sync


def test_created_databases_equal_the_contract(tmp_path: Path) -> None:
    for lineage, make in (("api", sync.sync_api), ("main", sync.sync_main)):
        url = f"sqlite:///{tmp_path}/{lineage}.db"
        make(Database(url))
        assert table_sheets.differences(lineage, url) == []


@pytest.mark.parametrize("lineage", [sync.API, sync.MAIN], ids=lambda lineage: lineage.name)
def test_revisions_are_novas(lineage: sync.Lineage) -> None:
    wanted = facts.load(f"db_{lineage.name}")
    assert lineage.revisions() == [one["revision"] for one in wanted["revisions"]]
    assert lineage.head == wanted["head"]
