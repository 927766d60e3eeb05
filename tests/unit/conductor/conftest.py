"""Database templates, made once; a stage per test."""

from __future__ import annotations

import pathlib

import pytest
from tests.unit.conductor.stage import Stage

from kilonova.db.engine import Database
from kilonova.db.migrations import sync


@pytest.fixture(scope="session")
def templates(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("templates")
    for name, make in (("api", sync.sync_api), ("cell", sync.sync_main)):
        database = Database(f"sqlite:///{folder}/{name}.db")
        make(database)
        database.dispose()
    return folder


@pytest.fixture
def stage(tmp_path: pathlib.Path, templates: pathlib.Path) -> Stage:
    return Stage(tmp_path, templates)
