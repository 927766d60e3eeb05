from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.cmd.cloud import Cloud
from tests.unit.cmd.placed import Placed

from kilonova.db.engine import Database
from kilonova.db.migrations import sync


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    for name, make in (("api", sync.sync_api), ("cell", sync.sync_main)):
        database = Database(f"sqlite:///{folder}/{name}.db")
        make(database)
        # Closed, so that everything is in the file that is copied and nothing in its log.
        database.dispose()
    return folder


@pytest.fixture
def empty(tmp_path: Path) -> Cloud:
    return Cloud(tmp_path)


@pytest.fixture
def cloud(made: Path, tmp_path: Path) -> Iterator[Cloud]:
    for name in ("api.db", "cell.db"):
        shutil.copy(made / name, tmp_path / name)
    found = Cloud(tmp_path)
    yield found
    found.api.dispose()
    found.cell.dispose()


@pytest.fixture
def placed(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> Placed:
    return Placed(cloud, monkeypatch)
