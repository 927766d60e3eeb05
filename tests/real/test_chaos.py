"""kill -9 of any process of ours at random moments: every server comes to an end, and all records agree."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.needs import needs
from tests.real import broker, chaos
from tests.real.processes import Cloud, databases, running

pytestmark = [
    pytest.mark.real,
    pytest.mark.chaos,
    pytest.mark.timeout(1500),
    needs("rabbitmq", "mariadb"),
]


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[Cloud]:
    (tmp_path / "run").mkdir()
    with databases(tmp_path / "db") as database, broker.rabbitmq(tmp_path / "bus") as bus:
        made = Cloud(tmp_path / "run", database, bus)
        with running(made):
            yield made


@pytest.mark.parametrize("victim", ["conductor", "scheduler", "api", "h1"])
def test_one_process_is_killed_again_and_again(cloud: Cloud, victim: str) -> None:
    chaos.storm(cloud, [victim], chaos.dice())
