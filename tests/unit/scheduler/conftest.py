"""Configuration, a source of hosts and a snapshot."""

from __future__ import annotations

import pytest
from tests.unit.scheduler.make import FakeSource

from kilonova import conf as options
from kilonova.scheduler.snapshot.cache import Snapshot


@pytest.fixture
def conf():
    return options.load([])


@pytest.fixture
def source() -> FakeSource:
    return FakeSource()


@pytest.fixture
def snapshot(source) -> Snapshot:
    return Snapshot(source, spacing=0.0)
