"""What passes is a line of the log: a database that is away writes no traceback in each interval."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from tests.unit.conductor.stage import Stage
from tests.waiting import until

from kilonova.base.periodic import Periodic
from kilonova.clients.http import ServiceError
from kilonova.conductor.keeping import Keeping
from kilonova.conductor.outages import passes
from kilonova.db import heartbeat
from kilonova.db.failures import LostError
from kilonova.db.flow_tables import KN_FLOW
from kilonova.flow.dispatcher import Dispatcher
from kilonova.flow.engine import Engine
from kilonova.flow.plan import flow, step
from kilonova.flow.run import Run
from kilonova.flow.seal import Seal
from kilonova.flow.store import NewFlow, State
from kilonova.reconcile.control import loops

AWAY = LostError("UPDATE services", None, OSError("connection refused"))
WRONG = LookupError("ours")


def raising(error: Exception) -> Any:
    def fail(*_: Any, **__: Any) -> Any:
        raise error

    return fail


def lines(caplog: pytest.LogCaptureFixture, text: str) -> list[logging.LogRecord]:
    return [each for each in caplog.records if text in each.getMessage()]


def told(caplog: pytest.LogCaptureFixture, text: str) -> tuple[int, bool]:
    """Level, and whether there is a traceback."""
    until(lambda: bool(lines(caplog, text)))
    first = lines(caplog, text)[0]
    return first.levelno, bool(first.exc_info)


ERRORS = pytest.mark.parametrize(
    ("error", "line"), [(AWAY, (logging.WARNING, False)), (WRONG, (logging.ERROR, True))], ids=["away", "wrong"]
)


@ERRORS
def test_a_heartbeat_that_was_not_written(
    stage: Stage,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    error: Exception,
    line: tuple[int, bool],
) -> None:
    beat = heartbeat.Heartbeat(stage.cell, "me", "nova-conductor", "conductor", interval=0.01)
    beat.start()
    monkeypatch.setattr(stage.cell, "run", raising(error))
    assert told(caplog, "was not written") == line
    beat.stop()


@ERRORS
def test_periodic_work_of_a_conductor(
    stage: Stage,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    error: Exception,
    line: tuple[int, bool],
) -> None:
    monkeypatch.setattr(stage.api, "query", raising(error))
    timers = Periodic("conductor", passes=passes)
    keeping = Keeping(stage.conf, lambda: [stage.api], stage.api, "me")
    timers.every(60.0, keeping.run, name="keeping", initial_delay=0.0)
    timers.start()
    assert told(caplog, "periodic task keeping failed") == line
    timers.stop()


def served(status: int) -> ServiceError:
    return ServiceError("placement", "no", status)


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (AWAY, (logging.WARNING, False)),
        (served(503), (logging.WARNING, False)),
        (served(400), (logging.ERROR, True)),
        (WRONG, (logging.ERROR, True)),
    ],
    ids=["database", "service", "refused", "wrong"],
)
def test_a_repair_that_failed(
    stage: Stage,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    error: Exception,
    line: tuple[int, bool],
) -> None:
    stage.conf.set_override("reconcile_grace", 0.0, group="kilonova")
    stage.api_store.offer(NewFlow("build", "s", {}))
    with stage.api.write() as tx:
        tx.execute(KN_FLOW.update().values(state=str(State.STUCK), position="locate"))
    stuck = loops.make(stage.world).passes["stuck_flows"]
    monkeypatch.setattr(stuck.loop, "repair", raising(error))
    stuck.run()
    assert stuck.run().failed == 1
    assert told(caplog, "could not be repaired") == line


@ERRORS
def test_a_flow_whose_end_of_a_stage_was_not_stored(
    stage: Stage, caplog: pytest.LogCaptureFixture, error: Exception, line: tuple[int, bool]
) -> None:
    def work(run: Run) -> None:
        run.lease.store.write = raising(error)  # type: ignore[method-assign]

    store = stage.cell_store
    store.offer(NewFlow("op", "s", {}))
    engine = Engine({"op": flow("op", step(work))}, None, Seal(["x"]), "me", passes=passes)
    dispatcher = Dispatcher(engine, lambda: [store], poll=0.05, workers=1)
    dispatcher.start()
    assert told(caplog, "stopped; it is tried again") == line
    dispatcher.stop(5)


@ERRORS
def test_the_list_of_cells(caplog: pytest.LogCaptureFixture, error: Exception, line: tuple[int, bool]) -> None:
    dispatcher = Dispatcher(Engine({}, None, Seal(["x"]), "me", passes=passes), raising(error), poll=0.05)
    dispatcher.start()
    assert told(caplog, "the list of cells could not be read") == line
    dispatcher.stop(5)
