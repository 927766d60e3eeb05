"""The engine: order, unwinding, retries, rests, fencing; on a real table."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kilonova.base import clock
from kilonova.db import flows
from kilonova.db.engine import Database
from kilonova.db.flows import FlowTable
from kilonova.flow.engine import Engine
from kilonova.flow.plan import Again, Finish, Flow, Retry, flow, rest, step
from kilonova.flow.run import Lease, Run
from kilonova.flow.seal import Seal
from kilonova.flow.store import EventKind, LeaseLost, NewFlow, State

SEAL = Seal(["for tests"])


class World:
    def __init__(self) -> None:
        self.did: list[str] = []
        self.fail: dict[str, list[Exception]] = {}
        self.ready = False

    def act(self, name: str) -> None:
        self.did.append(name)
        if self.fail.get(name):
            raise self.fail[name].pop(0)


def act(name: str):
    def do(run: Run) -> None:
        run.world.act(name)
        run.frame.setdefault("did", []).append(name)

    do.__name__ = name
    return do


def ready(run: Run) -> bool:
    return run.world.ready


def three(**kwargs) -> Flow:
    return flow(
        "three",
        step(act("a"), undo=act("undo_a")),
        step(act("b"), undo=act("undo_b"), **kwargs),
        rest(ready, every=0.0),
        step(act("c")),
    )


def put(table: FlowTable, **kwargs) -> NewFlow:
    new = NewFlow("three", "subject", {"n": 1}, **kwargs)
    assert table.offer(new)
    return new


def go(table: FlowTable, plan: Flow, world: World, new: NewFlow, lease_ms: int = 60_000, **kwargs) -> State:
    row = table.take(new.id, "me", lease_ms)
    assert row is not None
    engine = Engine({plan.op: plan}, world, SEAL, "me", rng=lambda: 0.0, **kwargs)
    return engine.run(Lease(table, row, clock.monotonic() + lease_ms / 1000))


def test_a_step_that_is_tried_for_ever_goes_on_waiting() -> None:
    assert Retry(attempts=1_000_000, cap=30.0).wait(5000, lambda: 1.0) == 30.0


def test_goes_through_all_stages_and_keeps_the_frame(table: FlowTable) -> None:
    world, new = World(), put(table)
    assert go(table, three(), world, new) is State.RESTING
    assert world.did == ["a", "b"]
    assert table.get(new.id).frame["did"] == ["a", "b"]
    world.ready = True
    assert go(table, three(), world, new) is State.DONE
    assert world.did == ["a", "b", "c"]
    row = table.get(new.id)
    assert (row.active_key, row.state, row.lease_owner) == (None, State.DONE, None)
    assert row.ended_at is not None
    assert table.active("subject") == []


def test_failure_undoes_the_failed_step_and_all_before_last_first(table: FlowTable) -> None:
    world, new = World(), put(table)
    world.fail["b"] = [ValueError("no")]
    assert go(table, three(), world, new) is State.UNWOUND
    assert world.did == ["a", "b", "undo_b", "undo_a"]
    row = table.get(new.id)
    assert row.reason == "no"
    assert row.frame["failure"]["class"] == "ValueError"


def test_retry_waits_and_tries_again(table: FlowTable) -> None:
    world, new = World(), put(table)
    world.fail["b"] = [OSError("1"), OSError("2")]
    plan = three(retry=Retry(on=(OSError,), attempts=3, base=0.01))
    assert go(table, plan, world, new) is State.RUNNING
    assert table.get(new.id).tries == 1
    assert go(table, plan, world, new) is State.RUNNING
    assert go(table, plan, world, new) is State.RESTING
    assert world.did == ["a", "b", "b", "b"]
    assert table.get(new.id).tries == 0


def test_retries_run_out(table: FlowTable) -> None:
    world, new = World(), put(table)
    world.fail["b"] = [OSError("1"), OSError("2")]
    plan = three(retry=Retry(on=(OSError,), attempts=2, base=0.01))
    assert go(table, plan, world, new) is State.RUNNING
    assert go(table, plan, world, new) is State.UNWOUND


def test_undo_that_never_works_leaves_the_flow_stuck_and_its_slot_taken(table: FlowTable, database: Database) -> None:
    world, new = World(), put(table)
    world.fail = {"b": [ValueError("no")], "undo_b": [OSError("away")] * 8}
    state = go(table, three(), world, new)
    while state is State.UNWINDING:
        state = go(table, three(), world, new)
    assert state is State.STUCK
    assert not table.offer(NewFlow("three", "subject", {}))
    database.run(flows.revive, new.id)
    assert go(table, three(), world, new) is State.UNWOUND


def test_finish_ends_without_undo(table: FlowTable) -> None:
    world, new = World(), put(table)
    world.fail["b"] = [Finish("nothing left to do")]
    assert go(table, three(), world, new) is State.DONE
    assert world.did == ["a", "b"]


def test_again_counts_as_no_failure(table: FlowTable) -> None:
    world, new = World(), put(table)
    world.fail["b"] = [Again("later", 0.0)] * 20
    for _ in range(20):
        assert go(table, three(), world, new) is State.RUNNING
    assert go(table, three(), world, new) is State.RESTING


def test_deadline_unwinds_at_the_next_stage(table: FlowTable, forward: Callable[[float], None]) -> None:
    world, new = World(), put(table, deadline=60.0)
    assert go(table, three(), world, new) is State.RESTING
    forward(61)
    assert go(table, three(), world, new) is State.UNWOUND
    assert table.get(new.id).frame["failure"]["class"] == "DeadlineExceeded"


def test_rest_has_a_limit(table: FlowTable, forward: Callable[[float], None]) -> None:
    plan = flow("three", step(act("a"), undo=act("undo_a")), rest(ready, every=0.0, limit=60.0))
    world, new = World(), put(table)
    assert go(table, plan, world, new) is State.RESTING
    forward(61)
    assert go(table, plan, world, new) is State.UNWOUND


def test_a_worker_without_lease_writes_nothing(table: FlowTable, forward: Callable[[float], None]) -> None:
    new = put(table)

    class Slow(World):
        def act(self, name: str) -> None:
            super().act(name)
            if name == "a" and self.did.count("a") == 1:
                forward(61)
                assert table.take(new.id, "other", 60_000) is not None

    world = Slow()
    row = table.take(new.id, "me", 60_000)
    with pytest.raises(LeaseLost):
        Engine({"three": three()}, world, SEAL, "me").run(Lease(table, row, clock.monotonic() + 600))
    after = table.get(new.id)
    assert (after.lease_owner, after.position, after.frame) == ("other", None, {"n": 1})


def test_guard_stops_a_worker_whose_lease_ran_out(table: FlowTable) -> None:
    new = put(table)
    row = table.take(new.id, "me", 60_000)
    lease = Lease(table, row, clock.monotonic() - 1)
    with pytest.raises(LeaseLost):
        Engine({"three": three()}, World(), SEAL, "me").run(lease)


def test_atomic_step_is_one_transaction_with_the_position(table: FlowTable, database: Database) -> None:
    def write(run: Run) -> None:
        flows.offer(run.tx, NewFlow("x", "made-by-step", {}))
        run.frame["wrote"] = True
        if run.world.fail.get("write"):
            raise run.world.fail["write"].pop()

    plan = flow("three", step(write, atomic=True, undo=act("undo")))
    world, new = World(), put(table)
    world.fail["write"] = [ValueError("no")]
    assert go(table, plan, world, new) is State.UNWOUND
    assert table.active("made-by-step") == []
    second = put(table)
    assert go(table, plan, World(), second) is State.DONE
    assert len(table.active("made-by-step")) == 1
    assert table.get(second.id).frame["wrote"] is True


def test_children_are_put_down_with_the_step(table: FlowTable) -> None:
    def spawn(run: Run) -> None:
        run.spawn(NewFlow("child", "kid", {}))

    new = put(table)
    assert go(table, flow("three", step(spawn)), World(), new) is State.DONE
    (child,) = table.active("kid")
    assert child.parent_id == new.id


def test_secrets_are_sealed_and_dropped_at_the_end(table: FlowTable, database: Database) -> None:
    seen = []

    def look(run: Run) -> None:
        seen.append(run.secrets)

    new = put(table, sealed=SEAL.close({"admin_password": "s3cret", "auth_token": None}))
    with database.read() as tx:
        dump = str(tx.exec_driver_sql("SELECT * FROM kn_flow").all())
    assert "s3cret" not in dump
    go(table, flow("three", step(look)), World(), new)
    assert seen == [{"admin_password": "s3cret"}]
    assert table.get(new.id).sealed is None


def test_a_stage_that_this_code_does_not_know_is_left_as_it_is(table: FlowTable) -> None:
    world, new = World(), put(table)
    go(table, three(), world, new)
    other = flow("three", step(act("z")))
    assert go(table, other, world, new) is State.RESTING
    row = table.get(new.id)
    assert (row.position, row.lease_owner, world.did) == ("ready", None, ["a", "b"])


def test_log_tells_what_happened(table: FlowTable, database: Database) -> None:
    world, new = World(), put(table)
    world.fail["c"] = [ValueError("no")]
    world.ready = True
    go(table, three(), world, new)
    with database.read() as tx:
        log = [(event.kind, event.step) for event in flows.events(tx, new.id)]
    assert log == [
        (EventKind.SUCCEEDED, "a"),
        (EventKind.SUCCEEDED, "b"),
        (EventKind.SUCCEEDED, "ready"),
        (EventKind.FAILED, "c"),
        (EventKind.UNDONE, "c"),
        (EventKind.UNDONE, "ready"),
        (EventKind.UNDONE, "b"),
        (EventKind.UNDONE, "a"),
    ]


def test_a_flow_with_a_foreign_key_is_left_to_others_for_a_while(table: FlowTable, monkeypatch) -> None:
    sealed = Seal(["another"]).close({"admin_password": "x"})
    seen = []
    plan = flow("three", step(lambda run: seen.append(run.secrets), name="look"))
    new = put(table, sealed=sealed)
    assert go(table, plan, World(), new) is State.RUNNING
    assert seen == []
    row = table.take(new.id, "other", 60_000)
    Engine({"three": plan}, World(), Seal(["another"]), "other").run(Lease(table, row, clock.monotonic() + 60))
    assert seen == [{"admin_password": "x"}]


def test_a_key_that_nobody_has_any_more_does_not_stop_a_flow_for_ever(table: FlowTable, monkeypatch) -> None:
    monkeypatch.setattr("kilonova.flow.engine.SEALED_PATIENCE", 0.0)
    seen = []
    plan = flow("three", step(lambda run: seen.append(run.secrets), name="look"))
    new = put(table, sealed=Seal(["another"]).close({"admin_password": "x"}))
    assert go(table, plan, World(), new) is State.DONE
    assert seen == [{}]


class Die(BaseException):
    pass


def light_three() -> Flow:
    return flow("three", step(act("a"), undo=act("undo_a"), light=True), step(act("b"), undo=act("undo_b")))


def test_the_end_of_a_light_step_is_written_with_the_next(table: FlowTable, database: Database) -> None:
    new, world = put(table), World()
    writes = []
    real = table.write
    table.write = lambda *args: (writes.append(args), real(*args))  # type: ignore[method-assign]
    assert go(table, light_three(), world, new) is State.DONE
    assert len(writes) == 1
    assert table.get(new.id).frame["did"] == ["a", "b"]
    log = [(event.kind, event.step) for event in database.query(flows.events, new.id)]
    assert log == [(EventKind.SUCCEEDED, "a"), (EventKind.SUCCEEDED, "b")]


def test_a_light_step_is_repeated_by_who_comes_after_a_death(
    table: FlowTable, forward: Callable[[float], None]
) -> None:
    new, world = put(table), World()

    def die(run: Run) -> None:
        raise Die

    with pytest.raises(Die):
        go(table, light_three(), world, new, between=die)
    forward(61)
    assert go(table, light_three(), world, new) is State.DONE
    assert world.did == ["a", "a", "b"]
    assert table.get(new.id).frame["did"] == ["a", "b"]


def test_a_failure_after_a_light_step_undoes_it_too(table: FlowTable) -> None:
    new, world = put(table), World()
    world.fail["b"] = [ValueError("no")]
    assert go(table, light_three(), world, new) is State.UNWOUND
    assert world.did == ["a", "b", "undo_b", "undo_a"]


def test_an_atomic_step_that_is_repeated_finds_what_a_light_one_left(table: FlowTable) -> None:
    new, world = put(table), World()
    seen = []

    def commit(run: Run) -> None:
        run.begin_again()
        seen.append(list(run.frame["did"]))

    plan = flow("three", step(act("a"), light=True), step(commit, atomic=True))
    assert go(table, plan, world, new) is State.DONE
    assert seen == [["a"]]


@pytest.mark.parametrize(
    "stages", [[step(act("a"), light=True)], [step(act("a"), light=True, atomic=True), step(act("b"))]]
)
def test_a_light_step_needs_a_next_one_and_no_transaction(stages: list) -> None:
    with pytest.raises(ValueError, match="light"):
        flow("three", *stages)


class Away(Exception):
    """Something else is away."""


def is_away(exc: BaseException) -> bool:
    return isinstance(exc, Away)


def driven(table: FlowTable, plan: Flow, world: World, new: NewFlow, most: int = 40) -> list[State]:
    """The states that the flow is left in, until it ends."""
    seen: list[State] = []
    while len(seen) < most:
        seen.append(go(table, plan, world, new, passes=is_away))
        if table.get(new.id).active_key is None:
            return seen
    return seen


def test_what_passes_is_waited_for_and_counts_as_no_try(table: FlowTable) -> None:
    world, new = World(), put(table)
    world.ready = True
    world.fail["b"] = [Away() for _ in range(20)]
    assert driven(table, three(), world, new)[-1] is State.DONE
    assert world.did.count("b") == 21
    assert table.get(new.id).tries == 0
    assert "away_since" not in table.get(new.id).frame


def test_what_passes_does_not_pass_the_deadline(table: FlowTable, forward: Callable[[float], None]) -> None:
    """Neither waiting nor a retry that covers everything takes a flow past its deadline."""
    for error, retry in ((Away, Retry()), (ValueError, Retry(on=(Exception,), attempts=1_000_000))):
        world, new = World(), put(table, deadline=60.0)
        world.fail["b"] = [error() for _ in range(1000)]
        assert go(table, three(retry=retry), world, new, passes=is_away) is State.RUNNING
        forward(61)
        assert go(table, three(retry=retry), world, new, passes=is_away) is State.UNWOUND
        assert world.did[-2:] == ["undo_b", "undo_a"]
        assert table.get(new.id).reason == "three did not end in time"


def test_an_undo_is_not_stuck_because_of_what_passes(table: FlowTable) -> None:
    world, new = World(), put(table)
    world.fail |= {"b": [ValueError("broken")], "undo_b": [Away() for _ in range(20)]}
    seen = driven(table, three(), world, new)
    assert (set(seen[:-1]), seen[-1]) == ({State.UNWINDING}, State.UNWOUND)


@pytest.mark.parametrize("error", [ValueError("look failed"), Again("not now", 0.0), Away()])
def test_a_limited_rest_ends_though_every_look_fails(
    table: FlowTable, error: Exception, forward: Callable[[float], None]
) -> None:
    def look(run: Run) -> bool:
        raise error

    untiring = Retry(on=(Exception,), attempts=1_000_000, base=0.0)
    plan = flow("three", step(act("a"), undo=act("undo_a")), rest(look, limit=60.0, retry=untiring))
    world, new = World(), put(table)
    assert go(table, plan, world, new, passes=is_away) in (State.RESTING, State.RUNNING)
    forward(61)
    assert go(table, plan, world, new, passes=is_away) is State.UNWOUND
    assert "rested at look" in table.get(new.id).reason


def test_a_child_whose_slot_is_taken_is_an_error(table: FlowTable) -> None:
    def spawn(run: Run) -> None:
        run.spawn(NewFlow("child", "free", {}))
        run.spawn(NewFlow("child", "taken", {}))

    plan = flow("three", step(act("a"), undo=act("undo_a")), step(spawn))
    taken, new, world = NewFlow("child", "taken", {}), put(table), World()
    table.offer(taken)
    assert go(table, plan, world, new) is State.UNWOUND
    assert world.did == ["a", "undo_a"]
    assert table.get(new.id).frame["failure"]["class"] == "ChildRefused"
    assert table.active("free") == []
    assert [row.id for row in table.active("taken")] == [taken.id]


@pytest.mark.parametrize("error", [ValueError("no"), Again("later", 0.0)])
def test_a_stage_that_did_not_end_has_no_children(table: FlowTable, error: Exception) -> None:
    def spawn(run: Run) -> None:
        run.spawn(NewFlow("child", "subject", {}))
        run.world.act("spawn")

    world, new = World(), put(table)
    world.fail["spawn"] = [error]
    plan = flow("three", step(spawn, retry=Retry(on=(ValueError,), base=0.0)))
    assert go(table, plan, world, new) is State.RUNNING
    assert table.active("subject", "child") == []
    assert go(table, plan, world, new) is State.DONE
    assert len(table.active("subject", "child")) == 1
