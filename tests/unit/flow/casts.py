"""What holds for casts of offered flows, in every database."""

from __future__ import annotations

from kilonova.db import flows
from kilonova.db.flows import FlowTable
from kilonova.flow.store import Change, NewFlow, Scope, State


def offered_until_called(table: FlowTable, op: str) -> None:
    """A flow is offered until its cast arrives."""
    new = NewFlow(op, "s", {})
    table.offer(new)
    (found,) = table.take_due("me", 60_000, 5, [Scope(op)])
    assert found.state is State.OFFERED
    later = flows.now_ms() + 60_000
    rest = Change(State.OFFERED, "first", later, release=True)
    table.write(new.id, found.lease_epoch, lambda tx: rest)
    called = table.take(new.id, "me", -1)
    assert (called.state, table.get(new.id).state) == (State.RUNNING, State.RUNNING)
    assert not table.arrived(new.id)


def call_kept_meanwhile(table: FlowTable, op: str) -> None:
    """A cast that arrives while a worker looks at the flow is not forgotten when that worker rests it."""
    new = NewFlow(op, "s", {})
    table.offer(new)
    (found,) = table.take_due("me", 60_000, 5, [Scope(op)])
    assert table.arrived(new.id)
    later = flows.now_ms() + 60_000
    rest = Change(State.OFFERED, "first", later, release=True)
    table.write(new.id, found.lease_epoch, lambda tx: rest)
    (again,) = table.take_due("me", 60_000, 5, [Scope(op)])
    assert again.state is State.RUNNING
