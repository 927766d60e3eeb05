"""The dispatcher: leases over time, takes over, hands back, keeps its bound."""

from __future__ import annotations

import pathlib
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from tests.waiting import until

from kilonova.base import clock, present
from kilonova.contract import exceptions
from kilonova.contract.context import RequestContext
from kilonova.db import flows
from kilonova.db.engine import Database
from kilonova.db.flow_tables import METADATA
from kilonova.db.flows import FlowTable
from kilonova.flow import dispatcher as dispatcher_module
from kilonova.flow import offers
from kilonova.flow.dispatcher import Dispatcher, Leases, Signal
from kilonova.flow.engine import Engine
from kilonova.flow.plan import Again, Flow, flow, rest, step
from kilonova.flow.run import Lease, Run
from kilonova.flow.seal import Seal
from kilonova.flow.store import NewFlow, State

SEAL = Seal(["x"])


def test_letting_go_of_a_lease_that_was_lost_keeps_the_one_that_replaced_it(table: FlowTable) -> None:
    new = NewFlow("op", "s", {})
    table.offer(new)
    leases = Leases(60.0, 900.0)
    first = table.take(new.id, "me", -1)
    second = table.take(new.id, "me", 60_000)
    assert first is not None
    assert second is not None
    stalled = leases.hold(table, first, clock.monotonic())
    leases.hold(table, second, clock.monotonic())
    leases.let_go(stalled)
    assert leases.holds(new.id)


def made(table: FlowTable, plan: Flow, world: object = None, **kwargs) -> Dispatcher:
    options = {"lease": 2.0, "poll": 0.05, "workers": 4, **kwargs}
    return Dispatcher(Engine({plan.op: plan}, world, SEAL, "me"), lambda: [table], **options)


def test_runs_what_is_due_and_not_more_than_its_workers(table: FlowTable) -> None:
    lock, inside, most = threading.Lock(), [0], [0]

    def work(run: Run) -> None:
        with lock:
            inside[0] += 1
            most[0] = max(most[0], inside[0])
        time.sleep(0.03)
        with lock:
            inside[0] -= 1

    ids = []
    for n in range(20):
        new = NewFlow("op", f"s{n}", {})
        table.offer(new)
        ids.append(new.id)
    dispatcher = made(table, flow("op", step(work)))
    dispatcher.start()
    until(lambda: all(table.get(each).state is State.DONE for each in ids))
    dispatcher.stop(5)
    assert 1 < most[0] <= 4


def test_a_long_step_keeps_its_lease(table: FlowTable, forward: Callable[[float], None]) -> None:
    entered, go_on = threading.Event(), threading.Event()

    def slow(run: Run) -> None:
        entered.set()
        go_on.wait(20)

    new = NewFlow("op", "s", {})
    table.offer(new)
    dispatcher = made(table, flow("op", step(slow)), lease=60.0)
    dispatcher.start()
    assert entered.wait(20)
    for _ in range(4):
        forward(20)
        dispatcher.leases.renew()
        assert table.take(new.id, "thief", 1000) is None
    go_on.set()
    until(lambda: table.get(new.id).state is State.DONE)
    dispatcher.stop(5)
    assert dispatcher.counts["lease_lost"] == 0


def test_the_watchdog_cuts_off_a_step_beyond_its_limit(table: FlowTable) -> None:
    lapsed: list[Lease] = []
    done = threading.Event()

    def hang(run: Run) -> None:
        done.wait(5)

    new = NewFlow("op", "s", {})
    table.offer(new)
    dispatcher = made(table, flow("op", step(hang)), lease=0.6, step_limit=0.1, on_lapse=lapsed.append)
    dispatcher.start()
    until(lambda: bool(lapsed))
    assert lapsed[0].row.id == new.id
    assert not lapsed[0].held()
    dispatcher.engine.stopping.set()
    until(lambda: table.take(new.id, "other", 60_000) is not None)
    done.set()
    dispatcher.stop(5)
    assert table.get(new.id).lease_owner == "other"


def test_stop_hands_flows_back_at_the_next_stage(table: FlowTable) -> None:
    entered, go_on = threading.Event(), threading.Event()

    def first(run: Run) -> None:
        entered.set()
        go_on.wait(5)

    plan = flow("op", step(first), step(lambda run: None, name="second"))
    new = NewFlow("op", "s", {})
    table.offer(new)
    dispatcher = made(table, plan, lease=60.0)
    dispatcher.start()
    assert entered.wait(5)
    threading.Timer(0.1, go_on.set).start()
    dispatcher.stop(5)
    row = table.get(new.id)
    assert (row.state, row.position, row.lease_owner) == (State.RUNNING, "second", None)
    other = made(table, plan)
    other.start()
    until(lambda: table.get(new.id).state is State.DONE)
    other.stop(5)


def test_a_cast_takes_the_offered_flow_at_once_and_a_repeated_cast_nothing(table: FlowTable) -> None:
    runs: list[str] = []
    plan = flow("op", step(lambda run: runs.append(run.subject_id), name="only"), rest(lambda run: False, name="wait"))
    offered = NewFlow("op", "s", {}, grace=60)
    table.offer(offered)
    dispatcher = made(table, plan)
    dispatcher.start()
    assert dispatcher.take(table, NewFlow("op", "s", {}))
    until(lambda: table.get(offered.id).state is State.RESTING)
    assert dispatcher.take(table, NewFlow("op", "s", {}))
    until(lambda: table.get(offered.id).lease_owner is None)
    dispatcher.stop(5)
    assert runs == ["s"]


def shy(run: Run) -> None:
    """Begins only what a cast has come for."""
    if run.uncalled:
        raise Again("perhaps a peer has it", 0.1)


def test_what_no_cast_came_for_stays_offered_until_one_comes(table: FlowTable) -> None:
    offered = NewFlow("op", "s", {})
    table.offer(offered)
    dispatcher = made(table, flow("op", step(shy)))
    dispatcher.start()
    until(lambda: table.get(offered.id).lease_epoch > 2)
    assert table.get(offered.id).state is State.OFFERED
    until(lambda: dispatcher.take(table, NewFlow("op", "s", {})))
    until(lambda: table.get(offered.id).state is State.DONE)
    dispatcher.stop(5)


def test_a_cast_that_finds_nobody_free_is_remembered(table: FlowTable) -> None:
    busy, free = threading.Event(), threading.Event()

    def work(run: Run) -> None:
        shy(run)
        if run.subject_id == "first":
            busy.set()
            free.wait(5)

    first, second = NewFlow("op", "first", {}), NewFlow("op", "second", {}, grace=60)
    table.offer(second)
    dispatcher = made(table, flow("op", step(work)), workers=1)
    dispatcher.start()
    assert dispatcher.take(table, first)
    assert busy.wait(5)
    assert dispatcher.resume(table, "second", "op")
    assert table.get(second.id).state is State.RUNNING
    assert not dispatcher.resume(table, "second", "op")
    free.set()
    until(lambda: table.get(second.id).state is State.DONE)
    dispatcher.stop(5)


def test_a_cast_that_comes_during_a_look_is_not_lost(table: FlowTable) -> None:
    looking, go_on = threading.Event(), threading.Event()

    def look(run: Run) -> None:
        if run.uncalled:
            looking.set()
            go_on.wait(5)
            raise Again("perhaps a peer has it", 60.0)

    offered = NewFlow("op", "s", {})
    table.offer(offered)
    dispatcher = made(table, flow("op", step(look)))
    dispatcher.start()
    assert looking.wait(5)
    assert dispatcher.resume(table, "s", "op")
    go_on.set()
    until(lambda: table.get(offered.id).state is State.DONE)
    dispatcher.stop(5)


def test_wake_shortens_a_rest(table: FlowTable) -> None:
    ready = threading.Event()
    plan = flow("op", rest(lambda run: ready.is_set(), every=60.0, name="wait"))
    new = NewFlow("op", "s", {})
    table.offer(new)
    dispatcher = made(table, plan, poll=0.1)
    dispatcher.start()
    until(lambda: table.get(new.id).state is State.RESTING)
    ready.set()
    began = time.monotonic()
    assert table.database.run(flows.wake, "s") == 1
    until(lambda: table.get(new.id).state is State.DONE)
    dispatcher.stop(5)
    assert time.monotonic() - began < 3


def test_a_database_that_is_away_cuts_the_worker_off_and_nothing_else(
    table: FlowTable, forward: Callable[[float], None]
) -> None:
    lapsed: list[Lease] = []
    sent: list[str] = []

    def work(run: Run) -> None:
        table.renew = away  # type: ignore[method-assign]
        dispatcher.leases.renew()
        run.guard()
        forward(60)
        dispatcher.leases.renew()
        assert run.lease.lost
        run.guard()
        sent.append("too late")

    def away(*args: object) -> set[str]:
        raise OSError("no database")

    new = NewFlow("op", "s", {})
    table.offer(new)
    dispatcher = made(table, flow("op", step(work)), lease=60.0, on_lapse=lapsed.append)
    dispatcher.start()
    until(lambda: dispatcher.counts["lease_lost"] == 1)
    dispatcher.stop(5)
    assert (lapsed, sent) == ([], [])


class Counting(FlowTable):
    """Counts how often it is asked for due flows."""

    looks = 0

    def any_due(self, *args, **kwargs):  # type: ignore[no-untyped-def]
        self.looks += 1
        return super().any_due(*args, **kwargs)


def test_a_cell_that_moved_to_another_database_is_followed_and_one_that_is_gone_is_left(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatcher_module, "_REFRESH", 0.02)
    old, new = (Counting(_database(tmp_path / f"{name}.db"), "cell") for name in ("old", "new"))
    listed: list[FlowTable] = [old]
    plan = flow("op", step(lambda run: None))
    dispatcher = Dispatcher(Engine({"op": plan}, None, SEAL, "me"), lambda: listed, poll=0.02)
    dispatcher.start()
    until(lambda: old.looks > 0)
    listed[:] = [new]
    until(lambda: new.looks > 1)
    before = old.looks
    there = NewFlow("op", "s", {})
    new.offer(there)
    until(lambda: new.get(there.id).state is State.DONE)
    assert old.looks == before
    listed.clear()
    until(lambda: not dispatcher._scanners["cell"].is_alive())
    listed[:] = [new]
    again = NewFlow("op", "t", {})
    new.offer(again)
    until(lambda: new.get(again.id).state is State.DONE)
    dispatcher.stop(5)


def test_an_end_makes_only_its_own_database_look(table: FlowTable, tmp_path: pathlib.Path) -> None:
    """With many cells, every server built would else cost a question to each of them."""
    other = Counting(_database(tmp_path / "other.db"), "other")
    plan = flow("op", step(lambda run: None))
    dispatcher = Dispatcher(Engine({"op": plan}, None, SEAL, "me"), lambda: [table, other], poll=60.0)
    dispatcher.start()
    until(lambda: other.looks > 0)
    for n in range(5):
        assert dispatcher.take(table, NewFlow("op", f"s{n}", {}))
    until(lambda: dispatcher.counts["done"] == 5)
    dispatcher.stop(5)
    assert other.looks == 1


def test_a_worker_that_is_free_again_is_told_to_whom_it_was_missing(table: FlowTable, tmp_path: pathlib.Path) -> None:
    other = FlowTable(_database(tmp_path / "other.db"), "other")
    go_on = threading.Event()
    plan = flow("op", step(lambda run: go_on.wait(10)))
    busy, waiting = NewFlow("op", "busy", {}), NewFlow("op", "waiting", {})
    dispatcher = Dispatcher(Engine({"op": plan}, None, SEAL, "me"), lambda: [table, other], poll=60.0, workers=1)
    assert dispatcher.take(table, busy)
    other.offer(waiting)
    dispatcher.start()
    until(lambda: "other" in dispatcher._short)
    go_on.set()
    until(lambda: other.get(waiting.id).state is State.DONE)
    dispatcher.stop(5)


def test_a_worker_that_a_look_did_not_need_is_told_to_whom_it_was_missing(
    table: FlowTable, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One database holds the only worker while it is asked, and has nothing due; the other found none meanwhile."""
    other = FlowTable(_database(tmp_path / "other.db"), "other")
    waiting = NewFlow("op", "waiting", {})
    other.offer(waiting)
    plan = flow("op", step(lambda run: None))
    dispatcher = Dispatcher(Engine({"op": plan}, None, SEAL, "me"), lambda: [table, other], poll=60.0, workers=1)
    looked = threading.Event()
    take_due, other_signal = table.take_due, dispatcher._signal("other")

    def take_slowly(*words: Any) -> Any:
        looked.wait(10)
        return take_due(*words)

    def wait(seen: int, timeout: float) -> None:
        looked.set()
        Signal.wait(other_signal, seen, timeout)

    monkeypatch.setattr(table, "any_due", lambda ops: True)
    monkeypatch.setattr(table, "take_due", take_slowly)
    monkeypatch.setattr(other_signal, "wait", wait)
    dispatcher.start()
    until(lambda: other.get(waiting.id).state is State.DONE)
    dispatcher.stop(5)


def test_a_database_that_says_nothing_keeps_no_worker_and_no_lease_of_others(
    table: FlowTable, tmp_path: pathlib.Path, forward: Callable[[float], None]
) -> None:
    """Its flows are held, its renewals and looks hang, and the others' long step keeps its lease all the same."""
    silent = FlowTable(_database(tmp_path / "silent.db"), "a-silent-one")
    answers = threading.Event()
    entered, go_on = ({name: threading.Event() for name in ("held", "long", "quick")} for _ in range(2))

    def work(run: Run) -> None:
        entered[run.subject_id].set()
        go_on[run.subject_id].wait(20)
        run.guard()

    held, long, quick = (NewFlow("op", name, {}) for name in ("held", "long", "quick"))
    silent.offer(held)
    dispatcher = Dispatcher(
        Engine({"op": flow("op", step(work))}, None, SEAL, "me"), lambda: [silent, table],
        lease=4.0, poll=0.02, workers=2,
    )  # fmt: skip
    dispatcher.start()
    assert entered["held"].wait(20)

    def says_nothing(*words: Any) -> Any:
        answers.wait(20)
        raise OSError("no database")

    silent.renew = silent.any_due = silent.take_due = says_nothing  # type: ignore[method-assign]
    table.offer(long)
    assert entered["long"].wait(20)
    for _ in range(4):
        forward(1.2)
        dispatcher.leases.renew()
    go_on["held"].set()
    until(lambda: dispatcher.counts["lease_lost"] == 1)
    table.offer(quick)
    go_on["quick"].set()
    until(lambda: table.get(quick.id).state is State.DONE)
    go_on["long"].set()
    until(lambda: table.get(long.id).state is State.DONE)
    answers.set()
    dispatcher.stop(5)
    assert dispatcher.counts["lease_lost"] == 1, "only the one whose database says nothing"


def _database(file: pathlib.Path) -> Database:
    database = Database(f"sqlite:///{file}")
    METADATA.create_all(database.engine)
    return database


def test_each_flow_works_for_its_own_request(table: FlowTable) -> None:
    """One thread drives the flows of two users and one of nobody, taken up from a cast of a third."""
    seen: list[tuple[str, str | None, str | None]] = []

    def look(run: Run) -> None:
        context = present.current()
        assert context is not None
        seen.append((run.subject_id, context.user_id, context.request_id))

    ann, joe = RequestContext("ann", "p"), RequestContext("joe", "p")
    for subject, context in (("a", ann), ("j", joe)):
        frame = {"context": offers.context_part(context)}
        table.offer(NewFlow("op", subject, frame, request_id=context.request_id))
    table.offer(NewFlow("op", "n", {}, request_id="req-of-nobody"))
    dispatcher = made(table, flow("op", step(look)), workers=1)
    with present.working(RequestContext("other", "p")):
        dispatcher.resume(table, "n", "op")
        dispatcher.start()
    until(lambda: len(seen) == 3)
    dispatcher.stop()
    assert sorted(seen) == [("a", "ann", ann.request_id), ("j", "joe", joe.request_id), ("n", None, "req-of-nobody")]


def test_a_refusal_that_unwinds_a_flow_is_one_line(table: FlowTable, caplog: pytest.LogCaptureFixture) -> None:
    def refuse(run: Run) -> None:
        raise exceptions.NoValidHost(reason="all are full") if run.subject_id == "r" else KeyError("broken")

    for subject in ("r", "k"):
        table.offer(NewFlow("op", subject, {}))
    dispatcher = made(table, flow("op", step(refuse)))
    dispatcher.start()
    until(lambda: dispatcher.counts["unwound"] == 2)
    dispatcher.stop()
    said = {("all are full" in r.getMessage(), r.exc_info is not None) for r in caplog.records if "unwinding" in r.msg}
    assert said == {(True, False), (False, True)}
