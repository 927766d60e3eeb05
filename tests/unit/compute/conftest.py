"""A world per test, on databases made once."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator

import pytest
from tests.unit.compute.world import World
from tests.unit.db.conftest import templates

__all__ = ["templates", "world"]


@pytest.fixture
def world(tmp_path: pathlib.Path, templates: pathlib.Path) -> Iterator[World]:
    made = World(tmp_path, templates)
    yield made
    made.close()
