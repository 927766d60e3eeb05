"""A transaction of the flow's own database that loses to another one says nothing about the step within."""

from __future__ import annotations

import sqlite3

import msgspec
import sqlalchemy as sa
from tests.unit.flow.test_dispatcher import made, until

from kilonova.db.flows import FlowTable
from kilonova.flow.plan import flow, step
from kilonova.flow.run import Run
from kilonova.flow.store import NewFlow, State


def test_a_transaction_that_loses_to_another_one_is_repeated_and_the_flow_goes_on(table: FlowTable) -> None:
    lost = []

    def commit(run: Run) -> None:
        run.tx.execute(sa.select(sa.literal(1)))
        if len(lost) < 2:
            lost.append(run.row.tries)
            raise sa.exc.OperationalError("UPDATE", None, sqlite3.OperationalError("database is locked"))

    table.database.options = msgspec.structs.replace(table.database.options, db_retry_interval=0.0)
    new = NewFlow("op", "s", {})
    table.offer(new)
    dispatcher = made(table, flow("op", step(commit, atomic=True)))
    dispatcher.start()
    until(lambda: table.get(new.id).state in (State.DONE, State.UNWOUND))
    dispatcher.stop(5)
    assert table.get(new.id).state is State.DONE
    assert lost == [0, 0]
