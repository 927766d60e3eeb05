"""kill -9 of any process of ours at random moments: every server comes to an end, and all records agree."""

from __future__ import annotations

import time
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

AWAY = 6.0
"""Seconds for which another service, or the databases, are away."""
AWAY_SERVERS = 30


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


@pytest.mark.parametrize("away", ["placement", "databases"])
def test_d4_builds_and_accepted_deletes_outlast_what_is_away(cloud: Cloud, away: str) -> None:
    """In the middle of them; none ends in ERROR."""
    made = [cloud.create(f"n{number}") for number in range(AWAY_SERVERS)]
    _away(cloud, away)
    cloud.until("builds", cloud.settled, chaos.SECONDS)
    assert {server: one["status"] for server, one in cloud.servers().items()} == dict.fromkeys(made, "ACTIVE")
    cloud.until("agreement after builds", lambda: not cloud.disagreements(), chaos.SECONDS)
    for server in made:
        assert cloud.request("DELETE", f"/servers/{server}")[0] == 204
    _away(cloud, away)
    cloud.until("deletions", lambda: not cloud.servers(), chaos.SECONDS)
    cloud.until("agreement after deletions", lambda: not (cloud.disagreements() or cloud.flows()), chaos.SECONDS)


def _away(cloud: Cloud, what: str) -> None:
    if what == "databases":
        cloud.database.kill()
        time.sleep(AWAY)
        cloud.database.start()
    else:
        getattr(cloud.fakes.cloud, what).away = 503
        time.sleep(AWAY)
        getattr(cloud.fakes.cloud, what).away = None
