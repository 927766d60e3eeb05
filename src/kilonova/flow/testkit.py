"""Proves flows: fails each at every stage, repeats every stage and undo, and kills the worker between every two stages.

A test gives a `Theatre`: how to put one run of the flow on stage in a fresh world, and what must be true at the end.
The kit knows nothing of servers. Used as `for case in every_case(FLOW): play(theatre, case)`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import time
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import msgspec

from kilonova.base import clock
from kilonova.flow.engine import Engine
from kilonova.flow.plan import Flow, Rest, Stage
from kilonova.flow.run import Describe, Lease, Run, describe
from kilonova.flow.seal import Seal
from kilonova.flow.store import ENDED, LIVE, FlowRow, FlowStore, LeaseLost, NewFlow, State


class Trouble(enum.StrEnum):
    """What happens to the run. `before` and `after`: whether the stage had done its work when it happened."""

    NONE = "none"
    FAIL_BEFORE = "fail before"
    FAIL_AFTER = "fail after"
    TWICE = "twice"
    KILL_BEFORE_WRITE = "kill before write"
    KILL_AFTER_WRITE = "kill after write"
    UNDO_TWICE = "undo twice"
    KILL_IN_UNDO = "kill in undo"


@dataclasses.dataclass(frozen=True)
class Case:
    """One run: the trouble, and the stage that it hits. Undo troubles follow a failure after that stage."""

    trouble: Trouble
    stage: str = ""

    def __str__(self) -> str:
        return f"{self.trouble} {self.stage}".strip()


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

    def check(self, row: FlowRow, case: Case) -> None:
        """Assert that the world and the record agree."""


def every_case(flow: Flow) -> Iterator[Case]:
    """Each trouble at each stage where it can happen."""
    yield Case(Trouble.NONE)
    for stage in flow.stages:
        for trouble in (Trouble.FAIL_BEFORE, Trouble.FAIL_AFTER, Trouble.KILL_BEFORE_WRITE, Trouble.KILL_AFTER_WRITE):
            yield Case(trouble, stage.name)
        if not getattr(stage, "atomic", False):
            # What is one transaction with the position happens once or not at all.
            yield Case(Trouble.TWICE, stage.name)
    for stage in flow.stages:
        for trouble in (Trouble.UNDO_TWICE, Trouble.KILL_IN_UNDO):
            yield Case(trouble, stage.name)


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
    told = _Told(flow, case)
    flows = {each.op: each for each in (told.flow, *others)}
    seal = Seal(["test kit"])
    first = theatre.offer()
    theatre.store.offer(first)
    for life in range(rounds):
        engine = Engine(
            flows,
            theatre.world,
            seal,
            f"worker-{life}",
            describe_failure=describe_failure,
            between=told.between,
            rng=lambda: 0.0,
        )
        _drive(theatre, engine, first)
        row = theatre.store.get(first.id)
        assert row is not None
        if row.state in ENDED or row.state is State.STUCK:
            theatre.meanwhile()
            theatre.check(row, case)
            assert told.happened or case.trouble is Trouble.NONE or row.state is State.DONE, f"{case} did not happen"
            return row
        theatre.meanwhile()
    raise AssertionError(f"{case}: the flow did not come to an end in {rounds} rounds; it is {row}")


def _drive(theatre: Theatre, engine: Engine, first: NewFlow) -> None:
    """Everything that is live, once, as the next process would find it after leases lapsed and waits are over."""
    for subject in {first.subject_id, *_subjects(theatre)}:
        for row in theatre.store.active(subject):
            if row.state not in LIVE or row.op not in engine.flows:
                continue
            taken = _take(theatre.store, row.id, engine.worker)
            lease = Lease(theatre.store, taken, clock.monotonic() + 60)
            with contextlib.suppress(Killed, LeaseLost):
                engine.run(lease)


def _subjects(theatre: Theatre) -> list[str]:
    return list(getattr(theatre, "subjects", ()))


def _take(store: FlowStore, flow_id: str, owner: str) -> FlowRow:
    # Leases of this kit last a millisecond: the next life finds them lapsed.
    for _ in range(100):
        if (row := store.take(flow_id, owner, 1)) is not None:
            return row
        time.sleep(0.002)
    raise AssertionError(f"flow {flow_id} could not be leased")


class _Told:
    """The flow with the case's trouble woven into its stages; each trouble happens once."""

    def __init__(self, flow: Flow, case: Case) -> None:
        self.case = case
        self.happened = False
        self._undo_happened = False
        stages = tuple(self._told(stage) if stage.name == case.stage else stage for stage in flow.stages)
        self.flow = msgspec.structs.replace(flow, stages=stages)

    def between(self, run: Run) -> None:
        """After a write: die if the case says so and the stage just left was ours."""
        moved = run.stage == self.case.stage
        if moved and self.case.trouble is Trouble.KILL_AFTER_WRITE and not self.happened:
            self.happened = True
            raise Killed

    def _told(self, stage: Stage) -> Stage:
        undo = None if stage.undo is None else self._told_undo(stage.undo)
        if isinstance(stage, Rest):
            return msgspec.structs.replace(stage, until=self._told_do(stage.until), undo=undo)
        return msgspec.structs.replace(stage, do=self._told_do(stage.do), undo=undo)

    def _told_do(self, do: Callable[[Run], Any]) -> Callable[[Run], Any]:
        def told(run: Run) -> Any:
            trouble = Trouble.NONE if self.happened else self.case.trouble
            if trouble is Trouble.FAIL_BEFORE:
                self.happened = True
                raise Injected(str(self.case))
            result = do(run)
            if trouble is Trouble.TWICE:
                self.happened = True
                run.begin_again()
                return do(run)
            if trouble in (Trouble.FAIL_AFTER, Trouble.UNDO_TWICE, Trouble.KILL_IN_UNDO):
                self.happened = True
                raise Injected(str(self.case))
            if trouble is Trouble.KILL_BEFORE_WRITE:
                self.happened = True
                raise Killed
            return result

        return told

    def _told_undo(self, undo: Callable[[Run], Any]) -> Callable[[Run], Any]:
        def told(run: Run) -> None:
            undo(run)
            if self._undo_happened:
                return
            self._undo_happened = True
            if self.case.trouble is Trouble.UNDO_TWICE:
                undo(run)
            if self.case.trouble is Trouble.KILL_IN_UNDO:
                raise Killed

        return told
