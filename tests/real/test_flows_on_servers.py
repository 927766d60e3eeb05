"""The flow table on MariaDB and PostgreSQL: two conductors pass each other by, leases fence, signals are kept."""

from __future__ import annotations

import threading
import time
from collections import Counter

import pytest
from tests.real.database_fixtures import database_server, databases
from tests.unit.flow import casts

from kilonova.db import flows
from kilonova.db.engine import Database
from kilonova.db.flows import FlowTable
from kilonova.flow.dispatcher import Dispatcher
from kilonova.flow.engine import Engine
from kilonova.flow.plan import flow, step
from kilonova.flow.run import Run
from kilonova.flow.seal import Seal
from kilonova.flow.store import Change, LeaseLost, NewFlow, Scope, State

__all__ = ["database_server", "databases"]

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]


@pytest.fixture
def table(databases: tuple[Database, Database]) -> FlowTable:
    return FlowTable(databases[0], "api")


def test_each_flow_runs_once_under_four_dispatchers(table: FlowTable) -> None:
    ran: Counter[str] = Counter()
    lock = threading.Lock()

    def work(run: Run) -> None:
        with lock:
            ran[run.subject_id] += 1

    plan = flow("op", step(work), step(lambda run: None, name="second"))
    ids = []
    for n in range(60):
        new = NewFlow("op", f"s{n}", {"n": n})
        assert table.offer(new)
        ids.append(new.id)
    made = [
        Dispatcher(Engine({"op": plan}, None, Seal(["x"]), f"w{n}"), lambda: [table], lease=20, poll=0.05, workers=4)
        for n in range(4)
    ]
    for dispatcher in made:
        dispatcher.start()
    until = time.monotonic() + 60
    while any(table.get(each).state is not State.DONE for each in ids):
        assert time.monotonic() < until
        time.sleep(0.1)
    for dispatcher in made:
        dispatcher.stop(10)
    assert set(ran.values()) == {1}
    assert len(ran) == 60


def test_lease_fence_and_signal(table: FlowTable) -> None:
    new = NewFlow("op", "s", {"text": "ä€😀"}, sealed="x")
    assert table.offer(new)
    assert not table.offer(NewFlow("op", "s", {}))
    row = table.take(new.id, "old", 100)
    assert row.frame == {"text": "ä€😀"}
    assert table.take(new.id, "new", 100) is None
    time.sleep(0.2)
    fresh = table.take(new.id, "new", 60_000)
    with pytest.raises(LeaseLost):
        table.write(new.id, row.lease_epoch, lambda tx: Change(State.DONE, None))
    assert table.database.run(flows.wake, "s") == 1
    later = flows.now_ms() + 60_000
    table.write(new.id, fresh.lease_epoch, lambda tx: Change(State.RESTING, "x", later, release=True))
    assert [each.id for each in table.take_due("me", 1000, 5, [Scope("op")])] == [new.id]
    assert table.renew({new.id: fresh.lease_epoch + 1}, 1000) == {new.id}


def test_a_flow_is_offered_until_its_cast_arrives(table: FlowTable) -> None:
    casts.offered_until_called(table, "called")


def test_a_cast_that_arrives_meanwhile_is_kept(table: FlowTable) -> None:
    casts.call_kept_meanwhile(table, "meanwhile")


def test_a_write_and_its_children_are_one(table: FlowTable) -> None:
    new = NewFlow("op", "parent", {})
    assert table.offer(new)
    row = table.take(new.id, "me", 60_000)

    def change(tx: object) -> Change:
        flows.offer(tx, NewFlow("op", "inside", {}))
        return Change(State.DONE, None, children=(NewFlow("op", "child", {}),))

    with pytest.raises(LeaseLost):
        table.write(new.id, row.lease_epoch + 7, change)
    assert table.active("inside") == table.active("child") == []
    table.write(new.id, row.lease_epoch, change)
    assert len(table.active("inside")) == len(table.active("child")) == 1
