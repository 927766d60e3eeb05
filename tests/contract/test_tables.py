"""Both databases against the contract: tables, revisions."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from kilonova.db.engine import Database
from kilonova.db.migrations import sync

SHARED = Path(__file__).parents[3] / "shared"
CHECK = SHARED / "check" / "tables"

pytestmark = pytest.mark.skipif(not CHECK.exists(), reason="the contract is not beside the work tree")


def test_created_databases_equal_the_contract(tmp_path: Path) -> None:
    urls = [f"sqlite:///{tmp_path}/{name}.db" for name in ("api", "cell")]
    sync.sync_api(Database(urls[0]))
    sync.sync_main(Database(urls[1]))
    done = subprocess.run([sys.executable, CHECK, *urls, "-v"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "TOTAL 100.0 %"


@pytest.mark.parametrize("lineage", [sync.API, sync.MAIN], ids=lambda lineage: lineage.name)
def test_revisions_are_novas(lineage: sync.Lineage) -> None:
    wanted = json.loads((SHARED / "contract" / f"db_{lineage.name}.json").read_text())
    assert lineage.revisions() == [one["revision"] for one in wanted["revisions"]]
    assert lineage.head == wanted["head"]
