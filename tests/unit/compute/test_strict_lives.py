"""[kilonova] strict_hosts: what hosts do in other files once more, in which they are refused nothing."""

from __future__ import annotations

import logging
import pathlib
from collections.abc import Iterator

import pytest
from tests.unit.compute import test_disconnection, test_host, test_moves, test_operations, test_refusals, test_releases
from tests.unit.compute.test_disconnection import server
from tests.unit.compute.test_releases import host
from tests.unit.compute.world import World

from kilonova.conductor.objects import strict

__all__ = ["host", "server"]

for _file in (test_disconnection, test_host, test_moves, test_operations, test_refusals, test_releases):
    _lives = {name: life for name, life in vars(_file).items() if name.startswith("test_") and callable(life)}
    assert not _lives.keys() & globals().keys(), "one would take the place of another"
    globals().update(_lives)


@pytest.fixture
def world(tmp_path: pathlib.Path, templates: pathlib.Path, caplog: pytest.LogCaptureFixture) -> Iterator[World]:
    with caplog.at_level(logging.WARNING, strict.LOG.name):
        made = World(tmp_path, templates)
        made.set("kilonova", strict_hosts=True)
        yield made
        made.close()
    assert [each for each in caplog.get_records("call") if each.name == strict.LOG.name] == []
