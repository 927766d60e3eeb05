"""Who else takes from the queue: told by pings, whatever the service records say."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa
from tests.unit.conductor.stage import CELL1_UUID, Stage

from kilonova.base import clock
from kilonova.conductor import peers
from kilonova.conductor.peers import Peers
from kilonova.db.api.tables import CELL_MAPPINGS
from kilonova.db.cell.tables import SERVICES
from kilonova.db.cells import CELL0_UUID
from kilonova.db.engine import Database
from kilonova.db.failures import LostError
from kilonova.db.heartbeat import service_announce
from kilonova.wire.rpc.errors import RpcTimeout, RpcUnreachable

OURS, THEIRS = "kilonova", "conductor"


class Bus:
    """`there`: host -> what its consumers say; a host that is missing is silent. The common queue has all of them."""

    def __init__(self, **there: list[str]) -> None:
        self.there = there
        self.conf = type("Conf", (), {"upgrade_levels": {"baseapi": None}, "rpc_response_timeout": 60})
        self.pings = 0
        self.unlisted: list[str] = []
        self.away = False

    def at(self, url: str) -> Bus | None:
        return self if url == "fake:///" else None

    def call(self, ctxt: Any, to: Any, message: Any, timeout: float | None = None, monitor: Any = None) -> Any:
        self.pings += 1
        if self.away:
            raise RpcUnreachable("no broker")
        everybody = [each for found in self.there.values() for each in found] + self.unlisted
        said = everybody if to.server is None else self.there.get(to.server, [])
        if not said:
            raise RpcTimeout("silent")
        return {"service": said[message.args["arg"] % len(said)], "arg": message.args["arg"]}


@pytest.fixture
def looking(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Callable[[Bus], Peers]:
    """Each question is a new look."""
    monkeypatch.setattr(peers, "REMEMBER", -1.0)
    return lambda bus: Peers(stage.conf, stage.cells, bus)


def report(database: Database, *hosts: str, ago: float = 0.0) -> None:
    for host in hosts:
        database.run(service_announce, host, "nova-conductor", "conductor")
        past = clock.naive_now().replace(microsecond=0) - datetime.timedelta(seconds=ago)
        with database.write() as tx:
            tx.execute(SERVICES.update().where(SERVICES.c.host == host).values(last_seen_up=past))


def test_only_ours(stage: Stage, looking: Callable[[Bus], Peers]) -> None:
    report(stage.cell0, "a")
    report(stage.cell, "b")
    assert not looking(Bus(a=[OURS], b=[OURS])).near()


def test_no_record_and_nobody_answers(looking: Callable[[Bus], Peers]) -> None:
    assert not looking(Bus()).near()


@pytest.mark.parametrize("there", [{"a": [OURS], "b": [THEIRS]}, {"a": [OURS, OURS, THEIRS]}])
def test_one_of_theirs_is_seen_with_and_without_a_name_of_its_own(
    stage: Stage, looking: Callable[[Bus], Peers], there: dict[str, list[str]]
) -> None:
    report(stage.cell0, *there)
    assert looking(Bus(**there)).near()


def test_one_without_a_record_is_seen(stage: Stage, looking: Callable[[Bus], Peers]) -> None:
    report(stage.cell0, "a")
    bus = Bus(a=[OURS])
    bus.unlisted = [THEIRS]
    assert looking(bus).near()


def test_a_replacement_under_the_same_name_is_noticed_both_ways(stage: Stage, looking: Callable[[Bus], Peers]) -> None:
    report(stage.cell0, "a", "b")
    bus = Bus(a=[OURS], b=[THEIRS])
    found = looking(bus)
    assert found.near()
    bus.there["b"] = [OURS]
    assert not found.near()
    bus.there["b"] = [THEIRS]
    assert found.near()


def test_a_silent_one_is_theirs_until_its_record_is_old_or_unless_it_was_ours(
    stage: Stage, looking: Callable[[Bus], Peers]
) -> None:
    report(stage.cell0, "a", "b")
    bus = Bus(a=[OURS])
    found = looking(bus)
    assert found.near()
    bus.there["b"] = [OURS]
    assert not found.near()
    del bus.there["b"]
    assert not found.near()
    assert looking(bus).near()
    report(stage.cell0, "b", ago=1000)
    assert not looking(bus).near()


def test_conductors_of_another_bus_are_not_asked(stage: Stage, looking: Callable[[Bus], Peers]) -> None:
    report(stage.cell, "b")
    with stage.api.write() as tx:
        tx.execute(
            sa.update(CELL_MAPPINGS)
            .where(CELL_MAPPINGS.c.uuid == CELL1_UUID)
            .values(transport_url="rabbit://elsewhere/")
        )
    stage.cells.refresh()
    assert not looking(Bus(a=[OURS])).near()


def test_a_cell_that_is_down_is_remembered_and_else_doubted(
    stage: Stage, looking: Callable[[Bus], Peers], monkeypatch: pytest.MonkeyPatch
) -> None:
    report(stage.cell0, "a")
    bus = Bus(a=[OURS])
    found = looking(bus)
    assert not found.near()

    def away(*args: Any, **kwargs: Any) -> Any:
        raise LostError("SELECT", {}, Exception("no database"))

    database = stage.cells.cell(CELL0_UUID).database
    monkeypatch.setattr(database, "query", away)
    assert not found.near()
    bus.there["a"] = [THEIRS]
    assert found.near()
    bus.there["a"] = [OURS]
    assert looking(bus).near()


def test_a_broker_that_is_away_tells_nothing_and_is_not_asked_again_for_each(
    stage: Stage, looking: Callable[[Bus], Peers]
) -> None:
    report(stage.cell0, "a", "b")
    bus = Bus(a=[OURS], b=[OURS])
    bus.away = True
    assert looking(bus).near()
    assert bus.pings == 1


def test_an_answer_is_good_for_some_seconds(stage: Stage) -> None:
    report(stage.cell0, "a")
    bus = Bus(a=[OURS])
    found = Peers(stage.conf, stage.cells, bus)
    before = clock.monotonic()
    assert not found.near()
    asked = bus.pings
    assert not found.near()
    assert not found.near(since=before)
    assert bus.pings == asked
    bus.there["a"] = [THEIRS]
    assert found.near(since=clock.monotonic())
