"""What is over is kept for its time, whatever the options of repair say; one conductor of all sees to it."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa
from tests.unit.conductor.stage import CELL1_UUID, PROJECT, Stage
from tests.unit.conductor.test_build import begin, run, turn
from tests.unit.conductor.test_delete import built

from kilonova.conductor import keeping
from kilonova.conductor.keeping import Keeping
from kilonova.db import flows, turns
from kilonova.db.engine import Database
from kilonova.db.loops import LoopLeases
from kilonova.flow.store import FlowRow


def made(stage: Stage, owner: str = "me") -> Keeping:
    return Keeping(stage.conf, lambda: [stage.api, stage.cell], stage.api, owner)


@pytest.fixture(autouse=True)
def repair_is_off(stage: Stage) -> None:
    stage.conf.set_override("reconcile_dry_run", True, group="kilonova")
    stage.conf.set_override("reconcile_disabled", ["stuck_flows", "orphan_ports"], group="kilonova")


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Goes on by so many seconds."""
    real = flows.now_ms

    def go(seconds: float) -> None:
        monkeypatch.setattr(flows, "now_ms", lambda: real() + int(seconds * 1000))

    return go


def history(stage: Stage, server: str) -> list[FlowRow]:
    return [row for database in (stage.api, stage.cell) for row in database.query(flows.history, server)]


def test_frames_for_an_hour_history_for_a_week_then_nothing(stage: Stage, later: Any) -> None:
    server = built(stage)
    stage.user_deletes(server)
    run(stage)
    before = history(stage, server)
    assert {row.op for row in before} == {"build_batch", "build", "delete"}
    later(3500)
    made(stage).run()
    assert all("context" in row.frame for row in history(stage, server))
    later(3700)
    made(stage).run()
    kept = history(stage, server)
    assert [row.frame for row in kept] == [{}] * 3
    assert [row.sealed for row in kept] == [None] * 3
    assert [(row.op, row.state, row.reason) for row in kept] == [(row.op, row.state, row.reason) for row in before]
    assert stage.api.query(flows.events, next(row.id for row in kept if row.op == "build"))
    later(8 * 86_400)
    made(stage).run()
    assert history(stage, server) == []


def test_what_goes_on_is_left_alone(stage: Stage, later: Any) -> None:
    server = begin(stage, stage.post())
    turn(stage)
    turn(stage)
    later(30 * 86_400)
    made(stage).run()
    (row,) = stage.api_store.active(server)
    assert "context" in row.frame
    assert row.sealed is not None


def test_turns_that_nobody_took_for_a_day(stage: Stage, later: Any) -> None:
    turns.turn_look(stage.api, turns.of_project(PROJECT))
    later(3600)
    turns.turn_look(stage.api, turns.of_project("another"))
    later(86_400 + 60)
    made(stage).run()
    with stage.api.write() as tx:
        turns.turn_take(tx, turns.of_project("another"))
        with pytest.raises(turns.NoTurnError):
            turns.turn_take(tx, turns.of_project(PROJECT))


def test_of_two_conductors_one_does_it(stage: Stage, later: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = []
    monkeypatch.setattr(keeping, "_all", lambda *args: ran.append(args))
    one, other = made(stage, "one"), made(stage, "other")
    one.run()
    before = len(ran)
    other.run()
    assert len(ran) == before > 0
    one.stop()
    other.run()
    assert len(ran) == 2 * before


def test_a_database_that_is_away_does_not_keep_others_waiting(
    stage: Stage, later: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = built(stage)

    def away(*args: Any, **kwargs: Any) -> Any:
        raise sa.exc.OperationalError("SELECT", None, OSError("the database is away"))

    gone = Database(str(stage.cells.cell(CELL1_UUID).database.url))
    monkeypatch.setattr(gone, "run", away)
    later(8 * 86_400)
    Keeping(stage.conf, lambda: [gone, stage.api], stage.api, "me").run()
    assert stage.api.query(flows.history, server) == []


def test_much_is_forgotten_in_many_transactions(stage: Stage, later: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeping, "TRANSACTIONS", 3)
    monkeypatch.setattr(keeping.ended_flows.flows_purge, "__defaults__", (2,))
    servers = [built(stage) for _ in range(4)]
    later(8 * 86_400)
    made(stage).run()
    left = sum(len(stage.api.query(flows.history, each)) for each in servers)
    assert left == 2
    assert LoopLeases(stage.api, "another").take(keeping.NAME, 1) is None
    made(stage).run()
    assert sum(len(stage.api.query(flows.history, each)) for each in servers) == 0
