"""An old conductor beside a new one: while a cloud is upgraded, and when it is rolled back half way."""

from __future__ import annotations

import random
import time
from typing import Any

import msgspec
import pytest
from tests.unit.conductor.stage import SEAL, Stage
from tests.unit.reconcile_control.test_loops import twice

from kilonova.base import clock
from kilonova.conductor.failures import describe
from kilonova.conductor.ops import build
from kilonova.conductor.service import FLOWS
from kilonova.db import flows
from kilonova.db.flow_tables import KN_FLOW
from kilonova.flow.engine import Engine
from kilonova.flow.plan import Flow, Step, step
from kilonova.flow.run import Lease, Run
from kilonova.flow.store import LIVE, State
from kilonova.reconcile.control.stuck_flows import StuckFlows

PINS: dict[str, int] = {}
"""What the new stage holds, by server; an older conductor knows nothing of it."""


def pin(run: Run) -> None:
    PINS[run.subject_id] = 1


def unpin(run: Run) -> None:
    PINS.pop(run.subject_id, None)


def newer(after: str, *, retiring: str | None = None) -> Flow:
    """The build flow of tomorrow: one stage more, and perhaps one less."""
    stages: list[Any] = []
    for stage in build.FLOW.stages:
        stages.append(msgspec.structs.replace(stage, retired=2) if stage.name == retiring else stage)
        if stage.name == after:
            stages.append(step(pin, undo=unpin, since=2))
    return Flow("build", tuple(stages), 2)


class Conductor:
    """Takes what is due, as its version of the code may, and does one stage of it at a time."""

    def __init__(self, stage: Stage, name: str, plan: Flow) -> None:
        self.stage = stage
        self.name = name
        self.took: list[str] = []
        self.engine = Engine(
            {**FLOWS, "build": plan}, stage.world, SEAL, name, describe_failure=describe, rng=lambda: 0.0
        )
        # Each stage by whoever is there: the flow is handed back after every one.
        self.engine.stopping.set()

    def turn(self) -> int:
        taken = 0
        for store in (self.stage.api_store, self.stage.cell_store):
            with store.database.write() as tx:
                tx.execute(KN_FLOW.update().values(wake_at=1))
            for row in store.take_due(self.name, 60_000, 50, self.engine.scopes()):
                taken += 1
                if row.op == "build":
                    self.took.append(row.position or "-")
                self.engine.run(Lease(store, row, clock.monotonic() + 60))
        return taken


@pytest.fixture(autouse=True)
def no_pins() -> None:
    PINS.clear()


def old(stage: Stage) -> Conductor:
    return Conductor(stage, "old", build.FLOW)


def begin(stage: Stage, count: int) -> list[str]:
    made = [stage.post() for _ in range(count)]
    for new in made:
        stage.api_store.offer(new)
    return [new.subject_id for new in made]


def live(stage: Stage) -> list[Any]:
    return [
        row for store in (stage.api_store, stage.cell_store)
        for row in store.database.query(flows.by_state, [*LIVE, State.STUCK])
    ]  # fmt: skip


def until_done(stage: Stage, conductors: list[Conductor], seed: int = 0, most: int = 300) -> None:
    rng = random.Random(seed)
    for _ in range(most):
        if not live(stage):
            return
        rng.choice(conductors).turn()
        assert not [row for row in live(stage) if row.state is State.STUCK]
        if rng.random() < 0.5:
            stage.compute.work()
        time.sleep(0.005)
    raise AssertionError(f"flows without end: {live(stage)}")


def all_live(stage: Stage, servers: list[str]) -> None:
    for server in servers:
        assert stage.server(server).vm_state == "active"
        assert list(stage.leftovers(server)["allocations"]) == [stage.providers[stage.server(server).host]]
        assert not any(row.state is State.UNWOUND for row in stage.api.query(flows.history, server))


@pytest.mark.parametrize("after", ["record", "commit", "send"])
@pytest.mark.parametrize("seed", range(2))
def test_old_and_new_side_by_side(stage: Stage, after: str, seed: int) -> None:
    """No flow fails, whoever has it; the old one takes none that passed a stage it does not know."""
    former, latter = old(stage), Conductor(stage, "new", newer(after))
    servers = []
    for conductor in [former, former, latter] * 4:
        servers += begin(stage, 1)
        conductor.turn()
    until_done(stage, [former, latter], seed)
    all_live(stage, servers)
    assert former.took
    assert latter.took
    assert "pin" not in former.took


def test_an_upgrade_finds_flows_at_every_stage_of_the_old_version(stage: Stage) -> None:
    servers = []
    former = old(stage)
    for _ in range(6):
        servers += begin(stage, 1)
        former.turn()
    assert {"send", "watch"} <= {row.position for row in live(stage)}
    until_done(stage, [Conductor(stage, "new", newer("commit"))])
    all_live(stage, servers)


def test_a_rollback_leaves_alone_what_only_the_new_code_knows_and_goes_on_with_the_rest(stage: Stage) -> None:
    latter = Conductor(stage, "new", newer("commit"))
    pinned = begin(stage, 3)
    while len(PINS) < 3:
        latter.turn()
    early = begin(stage, 3)
    while not all(stage.api.query(flows.active, server, "build") for server in early):
        latter.turn()
    before = {row.id: (row.state, row.position, row.code_version) for row in live(stage) if row.subject_id in pinned}
    assert {version for _, _, version in before.values()} == {2}
    former = old(stage)
    for _ in range(40):
        former.turn()
        twice(StuckFlows(stage.world))
        time.sleep(0.005)
        stage.compute.work()
    all_live(stage, early)
    left = {row.id: (row.state, row.position, row.code_version) for row in live(stage)}
    assert left == before
    assert set(PINS) == set(pinned)
    # The upgrade is done after all: they go on where they stood.
    until_done(stage, [former, Conductor(stage, "newer", newer("commit"))])
    all_live(stage, pinned)


def test_a_failure_under_the_new_code_is_undone_by_the_new_code_only(stage: Stage) -> None:
    (server,) = begin(stage, 1)

    def break_it(run: Run) -> None:
        raise ValueError("no")

    plan = newer("commit")
    stages = [msgspec.structs.replace(s, do=break_it) if isinstance(s, Step) and s.name == "send" else s
              for s in plan.stages]  # fmt: skip
    latter = Conductor(
        stage, "new", Flow("build", tuple(msgspec.structs.replace(s, retry=build.PATIENT) for s in stages), 2)
    )
    while not (rows := stage.api.query(flows.active, server, "build")) or rows[0].state is not State.UNWINDING:
        latter.turn()
    former = old(stage)
    for _ in range(10):
        former.turn()
    assert set(PINS) == {server}
    until_done(stage, [former, latter])
    assert PINS == {}
    assert stage.server(server).vm_state == "error"
    assert stage.leftovers(server) == {"allocations": {}, "ports": []}
    assert not former.took


def test_a_retired_stage_is_gone_on_from_and_undone_but_not_entered(stage: Stage) -> None:
    """The stage that goes is `send`: a flow that stands there under the old version does it yet."""
    (server,) = begin(stage, 1)
    former = old(stage)
    while not (rows := stage.api.query(flows.active, server, "build")) or rows[0].position != "send":
        former.turn()
    plan = newer("commit", retiring="send")
    assert plan.after("pin").name == "watch"
    until_done(stage, [Conductor(stage, "new", plan)])
    all_live(stage, [server])
