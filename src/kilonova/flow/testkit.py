"""Proves flows: fails each at every stage, repeats every stage and undo, kills and stalls the worker everywhere.

A test gives a `Theatre`: how to put one run of the flow on stage in a fresh world, and what must be true at the end.
The kit knows nothing of servers. Used as `for case in every_case(FLOW): play(theatre, case)`. Only what can happen is
played, and a case whose trouble did not happen fails.
"""

from __future__ import annotations

import enum
import itertools
import time
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import msgspec

from kilonova.base import clock
from kilonova.flow.engine import Engine, StoreFailed
from kilonova.flow.plan import DeadlineExceeded, Flow, Rest, Stage, Step
from kilonova.flow.run import Describe, Lease, Run, describe
from kilonova.flow.seal import Seal
from kilonova.flow.store import ENDED, LIVE, Change, FlowRow, FlowStore, LeaseLost, NewFlow, State


class Trouble(enum.StrEnum):
    """What happens to the run. `before` and `after`: whether the stage had done its work when it happened.

    A worker that stalls does its work, or its write, when another one has gone on with the flow.
    """

    FAIL_BEFORE = "fail before"
    FAIL_AFTER = "fail after"
    DEADLINE = "deadline before"
    TWICE = "twice"
    KILL_BEFORE_WRITE = "kill before write of"
    KILL_AFTER_WRITE = "kill after write of"
    STALL = "stall before"
    STALL_BEFORE_WRITE = "stall before write of"
    STORE_FAILS = "store fails at"
    UNDO_FAILS = "fail in undo of"
    UNDO_TWICE = "undo twice"
    KILL_IN_UNDO = "kill in undo of"
    KILL_AFTER_UNDO = "kill after undo of"
    STALL_IN_UNDO = "stall in undo of"


FAILURES = (Trouble.FAIL_BEFORE, Trouble.FAIL_AFTER, Trouble.DEADLINE)
IN_UNDO = (
    Trouble.UNDO_FAILS,
    Trouble.UNDO_TWICE,
    Trouble.KILL_IN_UNDO,
    Trouble.KILL_AFTER_UNDO,
    Trouble.STALL_IN_UNDO,
)


class Hit(msgspec.Struct, frozen=True):
    """One trouble at one stage."""

    trouble: Trouble
    stage: str

    def __str__(self) -> str:
        return f"{self.trouble} {self.stage}"


class Case(msgspec.Struct, frozen=True):
    """One run with the troubles that it meets; none at all is the ordinary way."""

    hits: tuple[Hit, ...] = ()

    def __str__(self) -> str:
        return ", ".join(map(str, self.hits)) or "none"

    @property
    def fails(self) -> bool:
        """Whether a stage fails in it."""
        return any(hit.trouble in FAILURES for hit in self.hits)


class Injected(Exception):
    """The failure that the kit raises."""


class Killed(BaseException):
    """The worker process died here."""


class Theatre(Protocol):
    """A fresh world for one run."""

    store: FlowStore
    world: Any

    def offer(self) -> NewFlow:
        """The flow to run; put down by the kit."""

    def meanwhile(self) -> None:
        """Called while the flow rests: the rest of the world goes on (hosts work, users look)."""

    def sent(self) -> int:
        """How many times a flow has asked for a change outside of its databases."""

    def check(self, row: FlowRow, case: Case) -> None:
        """Assert that the world and the record agree."""


def every_case(flow: Flow) -> Iterator[Case]:
    """Each trouble at each stage where it can happen; each in each undo after each failure; a death and a failure."""
    yield Case()
    for stage in flow.stages:
        for trouble in _possible(stage):
            yield Case((Hit(trouble, stage.name),))
    for place, stage in enumerate(flow.stages):
        failure = Hit(Trouble.FAIL_AFTER, stage.name)
        for undone, trouble in itertools.product(flow.stages[: place + 1], IN_UNDO):
            if undone.undo is not None:
                yield Case((failure, Hit(trouble, undone.name)))
        for earlier in flow.stages[: place + 1]:
            yield Case((Hit(Trouble.KILL_BEFORE_WRITE, earlier.name), failure))


def _possible(stage: Stage) -> Iterator[Trouble]:
    yield from (*FAILURES, Trouble.KILL_BEFORE_WRITE)
    if not (isinstance(stage, Step) and stage.atomic):
        # What is one transaction with the position happens once or not at all.
        yield from (Trouble.TWICE, Trouble.STALL)
    if not (isinstance(stage, Step) and stage.light):
        yield from (Trouble.KILL_AFTER_WRITE, Trouble.STALL_BEFORE_WRITE, Trouble.STORE_FAILS)


def play(
    theatre: Theatre,
    flow: Flow,
    case: Case,
    *,
    others: tuple[Flow, ...] = (),
    describe_failure: Describe = describe,
    rounds: int = 200,
) -> FlowRow:
    """Run the flow through a case to its end and check the world. `others` are flows that it may spawn."""
    played = _Play(theatre, flow, case, others, describe_failure)
    for _ in range(rounds):
        played.drive()
        theatre.meanwhile()
        row = theatre.store.get(played.first.id)
        assert row is not None
        if row.state in ENDED or row.state is State.STUCK:
            assert not played.left, f"did not happen: {', '.join(map(str, played.left))}"
            theatre.check(row, case)
            return row
    raise AssertionError(f"{case}: the flow did not come to an end in {rounds} rounds; it is {row}")


class _Play:
    """One case: the flow with the troubles woven into its stages and writes; each happens once."""

    def __init__(
        self, theatre: Theatre, flow: Flow, case: Case, others: tuple[Flow, ...], describe_failure: Describe
    ) -> None:
        self.theatre = theatre
        self.left = list(case.hits)
        told = msgspec.structs.replace(flow, stages=tuple(self._told(stage) for stage in flow.stages))
        self._flows = {each.op: each for each in (told, *others)}
        self._describe = describe_failure
        self._lives = itertools.count()
        self._expected: type[BaseException] | None = None
        self._sent_before: int | None = None
        self.at = ("", "")
        """("do" or "undo", stage) where the worker is."""
        self.first = theatre.offer()
        self.store = _Store(theatre.store, self)
        assert theatre.store.offer(self.first)

    def drive(self) -> None:
        """Everything that is live, once, as the next process would find it after leases lapsed and waits are over."""
        engine = _Engine(self, self._flows, self.theatre.world, f"worker-{next(self._lives)}", self._describe)
        for row in self.theatre.store.active(self.first.subject_id):
            if row.state in LIVE and row.op in engine.flows:
                self._drive_one(engine, row.id)

    def _drive_one(self, engine: Engine, flow_id: str) -> None:
        lease = Lease(self.store, _take(self.theatre.store, flow_id, engine.worker), clock.monotonic() + 60)
        self._expected = None
        met: BaseException | None = None
        try:
            engine.run(lease)
        except (Killed, LeaseLost, StoreFailed) as exc:
            met = exc
        expected = self._expected or type(None)
        assert isinstance(met, expected), f"the worker met {met!r}, and {expected.__name__} was to come"
        if self._sent_before is not None:
            assert self.theatre.sent() == self._sent_before, "a worker that stalled sent something when it came back"
            self._sent_before = None

    def happens(self, trouble: Trouble, stage: str) -> bool:
        """Whether this is the moment of a trouble that is still to happen."""
        hit = Hit(trouble, stage)
        if hit not in self.left:
            return False
        self.left.remove(hit)
        return True

    def kill(self) -> None:
        self._expected = Killed
        raise Killed

    def fail_store(self) -> None:
        self._expected = StoreFailed
        raise OSError("the database did not take it")

    def stall(self, lease: Lease | None) -> None:
        """The worker is away for so long that others do its work. `lease`: what it finds lapsed when it is back."""
        place = self.at
        if lease is not None:
            lease.until = clock.monotonic() - 1.0
        for _ in range(3):
            self.drive()
            self.theatre.meanwhile()
        self.at, self._expected = place, LeaseLost
        self._sent_before = self.theatre.sent()

    def _told(self, stage: Stage) -> Stage:
        undo = None if stage.undo is None else self._told_undo(stage.name, stage.undo)
        if isinstance(stage, Rest):
            return msgspec.structs.replace(stage, until=self._told_do(stage.name, stage.until), undo=undo)
        return msgspec.structs.replace(stage, do=self._told_do(stage.name, stage.do), undo=undo)

    def _told_do(self, name: str, do: Callable[[Run], Any]) -> Callable[[Run], Any]:
        def told(run: Run) -> Any:
            if self.happens(Trouble.FAIL_BEFORE, name):
                raise Injected(f"before {name}")
            if self.happens(Trouble.DEADLINE, name):
                raise DeadlineExceeded(f"before {name}")
            if self.happens(Trouble.STALL, name):
                self.stall(run.lease)
            result = do(run)
            if self.happens(Trouble.TWICE, name):
                run.begin_again()
                result = do(run)
            if self.happens(Trouble.KILL_BEFORE_WRITE, name):
                self.kill()
            if self.happens(Trouble.FAIL_AFTER, name):
                raise Injected(f"after {name}")
            return result

        return told

    def _told_undo(self, name: str, undo: Callable[[Run], Any]) -> Callable[[Run], Any]:
        def told(run: Run) -> None:
            if self.happens(Trouble.STALL_IN_UNDO, name):
                self.stall(run.lease)
            undo(run)
            if self.happens(Trouble.UNDO_TWICE, name):
                undo(run)
            if self.happens(Trouble.KILL_IN_UNDO, name):
                self.kill()
            if self.happens(Trouble.UNDO_FAILS, name):
                raise Injected(f"in undo of {name}")

        return told


class _Engine(Engine):
    """Says where it is."""

    def __init__(
        self, play: _Play, flows: dict[str, Flow], world: Any, worker: str, describe_failure: Describe
    ) -> None:
        super().__init__(flows, world, Seal(["test kit"]), worker, describe_failure=describe_failure, rng=lambda: 0.0)
        self._play = play

    def _move(self, flow: Flow, run: Run) -> bool:
        if run.row.id == self._play.first.id:
            stage = flow.stages[flow.index(run.row.position)]
            self._play.at = ("undo" if run.row.state is State.UNWINDING else "do", stage.name)
        return super()._move(flow, run)


class _Store:
    """The flow's own database, whose writes meet troubles."""

    def __init__(self, store: FlowStore, play: _Play) -> None:
        self._store = store
        self._play = play
        self.name = store.name

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def write(self, flow_id: str, epoch: int, change: Callable[[Any], Change]) -> None:
        if flow_id != self._play.first.id:
            self._store.write(flow_id, epoch, change)
            return
        phase, stage = self._play.at
        made: list[Change] = []
        if phase == "do" and self._play.happens(Trouble.STALL_BEFORE_WRITE, stage):
            self._play.stall(None)

        def told(tx: Any) -> Change:
            made[:] = [change(tx)]
            if phase == "do" and self._play.happens(Trouble.STORE_FAILS, stage):
                self._play.fail_store()
            return made[0]

        self._store.write(flow_id, epoch, told)
        if made[0].state is State.RESTING:
            # A worker that dies while its flow rests holds nothing.
            return
        if self._play.happens(Trouble.KILL_AFTER_UNDO if phase == "undo" else Trouble.KILL_AFTER_WRITE, stage):
            self._play.kill()


def _take(store: FlowStore, flow_id: str, owner: str) -> FlowRow:
    # Leases of this kit last a millisecond: the next life finds them lapsed.
    for _ in range(100):
        if (row := store.take(flow_id, owner, 1)) is not None:
            return row
        time.sleep(0.002)
    raise AssertionError(f"flow {flow_id} could not be leased")
