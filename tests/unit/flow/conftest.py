"""A flow table in a SQLite file."""

from __future__ import annotations

import pathlib

import pytest

from kilonova.db.engine import Database
from kilonova.db.flow_tables import METADATA
from kilonova.db.flows import FlowTable


@pytest.fixture
def database(tmp_path: pathlib.Path) -> Database:
    database = Database(f"sqlite:///{tmp_path / 'flows.db'}")
    METADATA.create_all(database.engine)
    return database


@pytest.fixture
def table(database: Database) -> FlowTable:
    return FlowTable(database, "test")
