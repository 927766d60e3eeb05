"""What all tests share: a test whose needs are not met is skipped, or fails where KILONOVA_REQUIRE says so."""

from __future__ import annotations

import pytest
from tests import needs


def pytest_runtest_setup(item: pytest.Item) -> None:
    for mark in item.iter_markers("needs"):
        needs.check(*mark.args)
