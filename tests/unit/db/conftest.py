"""Databases on SQLite files: made once, copied for each test."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from kilonova.db.engine import Database
from kilonova.db.migrations import sync


@pytest.fixture(scope="session")
def templates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("templates")
    for name, make in (("api", sync.sync_api), ("cell", sync.sync_main)):
        database = Database(f"sqlite:///{folder}/{name}.db")
        make(database)
        database.dispose()
    return folder


def copied(templates: Path, to: Path) -> tuple[Database, Database]:
    """An API database and a cell's of one's own in a folder."""
    found = []
    for name in ("api", "cell"):
        shutil.copy(templates / f"{name}.db", to / f"{name}.db")
        found.append(Database(f"sqlite:///{to}/{name}.db"))
    return found[0], found[1]


def _copy(templates: Path, name: str, to: Path) -> Iterator[Database]:
    shutil.copy(templates / f"{name}.db", to / f"{name}.db")
    database = Database(f"sqlite:///{to}/{name}.db", db_retry_interval=0.01)
    yield database
    database.dispose()


@pytest.fixture
def api_db(templates: Path, tmp_path: Path) -> Iterator[Database]:
    yield from _copy(templates, "api", tmp_path)


@pytest.fixture
def cell_db(templates: Path, tmp_path: Path) -> Iterator[Database]:
    yield from _copy(templates, "cell", tmp_path)
