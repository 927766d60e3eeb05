"""A connection that is lost in COMMIT writes nothing twice, whether or not the server got it: each kind of write."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa
from tests.real.database_fixtures import database_server, databases
from tests.real.relays import AFTER, BEFORE, CommitRelay, relayed
from tests.real.test_lost_transactions import WRITES

from kilonova.base import ids
from kilonova.db.cell import instances
from kilonova.db.engine import Database, Tx
from kilonova.db.failures import LostError
from kilonova.db.flows import FlowTable
from kilonova.db.outcomes import DuplicateError, Stale, Updated
from kilonova.flow.store import Change, EventKind, FlowEvent, LeaseLost, NewFlow, State

__all__ = ["database_server", "databases"]

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

Way = tuple[Database, CommitRelay]


@pytest.fixture(scope="module")
def ways(databases: tuple[Database, Database]) -> Iterator[dict[str, Way]]:
    """The databases, through relays."""
    with relayed(databases[0].url) as api, relayed(databases[1].url) as cell:
        found = {}
        for name, relay in (("api", api), ("cell", cell)):
            database = Database(relay.url.render_as_string(hide_password=False), db_retry_interval=0.05)
            found[name] = (database, relay)
        yield found
        for database, _ in found.values():
            database.dispose()


def _count(database: Database, text: str) -> int:
    return database.query(lambda tx: int(tx.exec_driver_sql(text).scalar_one()))


@pytest.mark.parametrize("when", [BEFORE, AFTER])
@pytest.mark.parametrize("what", WRITES)
def test_written_once_at_most(ways: dict[str, Way], what: str, when: str) -> None:
    where, write, count = WRITES[what]
    database, relay = ways[where]
    name, cuts = ids.new_uuid(), relay.cuts
    relay.arm(when)
    with pytest.raises(LostError):
        database.run(write, name)
    assert relay.cuts == cuts + 1
    there = 1 if when == AFTER else 0
    assert _count(database, count.format(name)) == there
    # Whoever asks for the same again is told that it is there, or finds it so; there is never a second one.
    try:
        database.run(write, name)
    except DuplicateError:
        assert there
    assert _count(database, count.format(name)) == 1


@pytest.mark.parametrize("when", [BEFORE, AFTER])
def test_a_change_of_state_is_looked_up_by_its_condition(ways: dict[str, Way], when: str) -> None:
    cell, relay = ways["cell"]
    uuid = ids.new_uuid()
    cell.run(lambda tx: instances.instance_create(tx, {"uuid": uuid, "project_id": "p"}))
    relay.arm(when)
    with pytest.raises(LostError):
        cell.run(instances.instance_update, uuid, {"task_state": "deleting"}, {"task_state": None})
    again = cell.run(instances.instance_update, uuid, {"task_state": "deleting"}, {"task_state": None})
    assert again == (Stale({"task_state": "deleting"}) if when == AFTER else Updated())


@pytest.mark.parametrize("when", [BEFORE, AFTER])
def test_a_flow_moves_once(ways: dict[str, Way], when: str) -> None:
    """A worker that does not know whether its write arrived leaves the lease; the next one sees where the flow is."""
    cell, relay = ways["cell"]
    table = FlowTable(cell, "cell")
    new = NewFlow(op="op", subject_id=ids.new_uuid(), frame={})
    table.offer(new)
    lease = table.take(new.id, "a", 60_000)
    assert lease is not None

    def change(_tx: Tx) -> Change:
        event = FlowEvent(new.id, 1, EventKind.SUCCEEDED, step="one")
        return Change(State.RUNNING, position="two", tries=0, events=[event])

    relay.arm(when)
    with pytest.raises(LostError):
        table.write(new.id, lease.lease_epoch, change)
    found = table.get(new.id)
    assert found is not None
    assert found.position == ("two" if when == AFTER else None)
    stale = sa.text("UPDATE kn_flow SET lease_until = 0 WHERE id = :id")
    cell.run(lambda tx: tx.execute(stale, {"id": new.id}))
    taken = table.take(new.id, "b", 60_000)
    assert taken is not None
    with pytest.raises(LeaseLost):
        table.write(new.id, lease.lease_epoch, change)
    assert taken.position == found.position


@pytest.mark.parametrize("when", [BEFORE, AFTER])
def test_a_lease_that_was_lost_in_its_commit_lapses(ways: dict[str, Way], when: str) -> None:
    cell, relay = ways["cell"]
    table = FlowTable(cell, "cell")
    new = NewFlow(op="op", subject_id=ids.new_uuid(), frame={})
    table.offer(new)
    relay.arm(when)
    with pytest.raises(LostError):
        table.take(new.id, "a", 200)
    epochs: set[Any] = set()
    for _ in range(100):
        taken = table.take(new.id, "b", 60_000)
        if taken is not None:
            epochs.add(taken.lease_epoch)
            break
        time.sleep(0.05)
    assert epochs == ({2} if when == AFTER else {1})


def test_a_connection_that_ended_while_it_lay_idle_costs_nobody_anything(ways: dict[str, Way]) -> None:
    """A server that was restarted: what its old connections say is noticed before they are used."""
    cell, _ = ways["cell"]
    kill = {
        "mysql": "SELECT CONNECTION_ID()",
        "postgresql": "SELECT pg_backend_pid()",
    }[cell.dialect]
    number = cell.query(lambda tx: tx.exec_driver_sql(kill).scalar_one())
    stop = {"mysql": f"KILL {number}", "postgresql": f"SELECT pg_terminate_backend({number})"}[cell.dialect]
    other = Database(cell.url.render_as_string(hide_password=False))
    other.run(lambda tx: tx.exec_driver_sql(stop))
    other.dispose()
    time.sleep(0.2)
    with cell.read() as tx:
        assert tx.exec_driver_sql(kill).scalar_one() != number
