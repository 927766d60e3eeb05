"""Leasing, signals and slots of the flow table."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import sqlalchemy as sa
from tests.unit.flow import casts

from kilonova.db import ended_flows, flows
from kilonova.db.engine import Database
from kilonova.db.flows import FlowTable
from kilonova.flow.store import Change, LeaseLost, NewFlow, Scope, State


def test_one_unfinished_flow_per_slot(table: FlowTable) -> None:
    assert table.offer(NewFlow("build", "s", {}))
    assert not table.offer(NewFlow("build", "s", {}))
    assert table.offer(NewFlow("delete", "s", {}))


def test_two_that_offer_at_once_put_down_one(
    database: Database, table: FlowTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Early:
        """A transaction that looked before the other's flow was there."""

        def __init__(self, tx: Any) -> None:
            self.tx = tx

        def execute(self, statement: Any) -> Any:
            return self.tx.execute(statement.where(sa.false()) if statement.is_select else statement)

    assert table.offer(NewFlow("build", "s", {}))
    real = database.run
    monkeypatch.setattr(database, "run", lambda fn, *args: real(lambda tx: fn(Early(tx), *args)))
    assert not table.offer(NewFlow("build", "s", {}))
    assert table.offer(NewFlow("build", "other", {}))


def test_grace_keeps_the_flow_for_the_cast(table: FlowTable) -> None:
    new = NewFlow("build", "s", {}, grace=60)
    table.offer(new)
    assert table.take_due("me", 1000, 10, [Scope("build")]) == []
    assert table.take(new.id, "me", 1000) is not None


def test_a_flow_is_offered_until_its_cast_arrives(table: FlowTable) -> None:
    casts.offered_until_called(table, "op")


def test_a_cast_that_arrives_meanwhile_is_kept(table: FlowTable) -> None:
    casts.call_kept_meanwhile(table, "op")


def test_each_flow_goes_to_one_worker(table: FlowTable) -> None:
    for n in range(40):
        table.offer(NewFlow("build", f"s{n}", {}))
    with ThreadPoolExecutor(4) as pool:
        taken = list(pool.map(lambda n: table.take_due(f"w{n}", 60_000, 15, [Scope("build")]), range(4)))
    ids = [row.id for rows in taken for row in rows]
    assert len(ids) == len(set(ids)) == 40


def test_operations_that_this_worker_does_not_know_are_left(table: FlowTable) -> None:
    table.offer(NewFlow("resize", "s", {}))
    assert table.take_due("me", 1000, 10, [Scope("build")]) == []


def test_a_lapsed_lease_is_taken_over_and_fenced(table: FlowTable, forward: Callable[[float], None]) -> None:
    new = NewFlow("build", "s", {})
    table.offer(new)
    old = table.take(new.id, "old", 60_000)
    forward(50)
    assert table.take(new.id, "new", 60_000) is None
    forward(11)
    fresh = table.take(new.id, "new", 60_000)
    assert fresh.lease_epoch == old.lease_epoch + 1
    with pytest.raises(LeaseLost):
        table.write(new.id, old.lease_epoch, lambda tx: Change(State.DONE, None))
    assert table.renew({new.id: old.lease_epoch}, 1000) == set()
    assert table.renew({new.id: fresh.lease_epoch}, 1000) == {new.id}


def test_a_signal_during_a_run_is_not_lost(table: FlowTable) -> None:
    new = NewFlow("build", "s", {})
    table.offer(new)
    row = table.take(new.id, "me", 60_000)
    assert table.database.run(flows.wake, "s") == 1
    later = flows.now_ms() + 60_000
    table.write(new.id, row.lease_epoch, lambda tx: Change(State.RESTING, "x", later, release=True))
    (again,) = table.take_due("me", 60_000, 1, [Scope("build")])
    table.write(new.id, again.lease_epoch, lambda tx: Change(State.RESTING, "x", later, release=True))
    assert table.take_due("me", 60_000, 1, [Scope("build")]) == []


def test_abandon_needs_who_and_why_and_fences(table: FlowTable, database: Database) -> None:
    new = NewFlow("build", "s", {}, sealed="x")
    table.offer(new)
    row = table.take(new.id, "me", 60_000)
    with database.write() as tx, pytest.raises(ValueError, match="who and why"):
        flows.abandon(tx, new.id, who="", why="x")
    with database.write() as tx:
        assert flows.abandon(tx, new.id, who="operator", why="the host burnt down")
    with pytest.raises(LeaseLost):
        table.write(new.id, row.lease_epoch, lambda tx: Change(State.DONE, None))
    ended = table.get(new.id)
    assert (ended.state, ended.sealed, ended.reason) == (State.ABANDONED, None, "the host burnt down")
    with database.read() as tx:
        assert flows.events(tx, new.id)[-1].worker == "operator"


def test_a_reason_fits_into_its_column(table: FlowTable) -> None:
    new = NewFlow("build", "s", {})
    table.offer(new)
    taken = table.take(new.id, "me", 60_000)
    assert taken is not None
    table.write(new.id, taken.lease_epoch, lambda tx: Change(State.UNWINDING, "a", reason="\N{EURO SIGN}" * 70_000))
    kept = table.get(new.id)
    assert kept is not None
    assert kept.reason is not None
    assert len(kept.reason.encode()) <= 65535


def test_purge_forgets_old_ends_with_their_log(table: FlowTable, database: Database) -> None:
    new, live = NewFlow("build", "s", {}), NewFlow("build", "t", {})
    table.offer(new)
    table.offer(live)
    row = table.take(new.id, "me", 60_000)
    table.write(new.id, row.lease_epoch, lambda tx: Change(State.DONE, None))
    with database.write() as tx:
        assert ended_flows.flows_purge(tx, flows.now_ms() + 1000) == 1
    assert table.get(new.id) is None
    assert table.get(live.id) is not None


def test_of_ended_flows_their_history_is_left(table: FlowTable, database: Database) -> None:
    frame = {"context": {"user_id": "u"}, "request_specs": ["much"], "answer": {"body": 1}, "attempt": 2}
    ended, live, stuck = (NewFlow("build", each, frame, sealed="x") for each in ("s", "t", "u"))
    for new in (ended, live, stuck):
        table.offer(new)
        row = table.take(new.id, "me", 60_000)
        state = {ended.id: State.DONE, live.id: State.RESTING, stuck.id: State.STUCK}[new.id]
        table.write(new.id, row.lease_epoch, lambda tx, state=state: Change(state, None, reason="r"))
    with database.write() as tx:
        assert ended_flows.frames_cut(tx, flows.now_ms() - 1000) == 0, "it has its time"
        assert ended_flows.frames_cut(tx, flows.now_ms() + 1000) == 1
        assert ended_flows.frames_cut(tx, flows.now_ms() + 1000) == 0, "none is looked at twice"
    assert table.get(ended.id).frame == {"answer": {"body": 1}, "attempt": 2}
    assert table.get(ended.id).reason == "r"
    assert (table.get(live.id).frame, table.get(live.id).sealed) == (frame, "x")
    assert (table.get(stuck.id).frame, table.get(stuck.id).sealed) == (frame, "x")
    with database.read() as tx:
        assert [row.state for row in flows.history(tx, "s")] == [State.DONE]
