"""What all tests share: a test whose needs are not met is skipped, or fails where KILONOVA_REQUIRE says so; time that
passes at a word.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests import needs, waiting

from kilonova.base import clock, present


def pytest_runtest_setup(item: pytest.Item) -> None:
    for mark in item.iter_markers("needs"):
        needs.check(*mark.args)


@pytest.fixture(autouse=True)
def works_for_nobody() -> None:
    """A context that a test before made its thread's present one says nothing of this test."""
    present.become(None)


@pytest.fixture
def forward(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Lets so many seconds pass at once, for everything that reads the time."""
    ahead = waiting.Ahead()
    monkeypatch.setattr(clock, "source", ahead)
    return ahead.forward
