"""The vocabulary of a flow file: its table of contents.

    FLOW = flow(
        "build",
        step(accept, undo=bury),
        step(choose, undo=release, retry=Retry(on=(Timeout,))),
        rest(watch, every=5.0, limit=600.0),
    )

Guarantees (those of steno's sagas): a step runs at least once; once a later step has ended, an earlier one never
runs again; after a failure the failed step and every step before it are undone, last first; a flow ends as done,
unwound, or stuck because an undo failed. So steps and undos are written to be repeated, and an undo works even if its
step did nothing or half of it.

The end of a `light` step is not written by itself but with that of the next stage: a worker that dies in between
repeats it. That saves a transaction where the step is as good as its repetition.

Conductors of several versions drive the same flows while a cloud is upgraded, or rolled back. So a flow has a version,
raised with every change of its stages: a stage that is new, or does something else than before, says `since` which
version; one that goes says `retired` and stays in the file: flows that stand there go on from it, flows that passed it
undo it, nobody else enters it. What each version consisted of is kept in tests/unit/conductor/flow_versions.json.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from kilonova.base.retry import grown
from kilonova.flow.store import Scope

if TYPE_CHECKING:
    from kilonova.flow.run import Run

Action = Callable[["Run"], Any]
Decider = Callable[["Run"], bool]
Pause = float | Callable[["Run"], float]
"""Seconds, or what tells them."""


class Finish(Exception):
    """Raised by a step: the rest of the flow has nothing to do, and nothing is to be undone."""


class Again(Exception):
    """Raised by a step or an undo: not now, call me again after `wait` seconds. Counts as no failure.

    An offered flow whose first step raises it stays offered.
    """

    def __init__(self, reason: str, wait: float) -> None:
        super().__init__(reason)
        self.wait = wait


class DeadlineExceeded(Exception):
    """The flow, or a rest of it, did not come to its end in time. No `Retry` covers it."""


class Retry(msgspec.Struct, frozen=True):
    """Which failures of a step are worth another try, and how long to wait before: exponential, half by chance."""

    on: tuple[type[BaseException], ...] = ()
    but: tuple[type[BaseException], ...] = ()
    attempts: int = 5
    base: float = 0.5
    cap: float = 30.0
    factor: float = 2.0

    def covers(self, exc: BaseException) -> bool:
        """Whether the failure is worth another try."""
        return isinstance(exc, self.on) and not isinstance(exc, self.but)

    def wait(self, failures: int, rng: Callable[[], float]) -> float:
        """Seconds before the next try after so many failures."""
        top = grown(self.base, self.factor, failures - 1, self.cap)
        return top * (0.5 + 0.5 * rng())


NO_RETRY = Retry(attempts=1)
UNDO_RETRY = Retry(on=(Exception,), attempts=8)
"""An undo has no other way out, so every failure is tried again for some minutes before the flow is stuck."""


class Step(msgspec.Struct, frozen=True):
    """One piece of work. `atomic`: it only changes the flow's own database, in one transaction with the position.

    `light`: its end is written with that of the next stage. `needs` names what must be there for it: workers without it
    leave the flow to others.
    """

    name: str
    do: Action
    undo: Action | None = None
    retry: Retry = NO_RETRY
    undo_retry: Retry = UNDO_RETRY
    atomic: bool = False
    light: bool = False
    needs: str | None = None
    since: int = 1
    retired: int | None = None


class Rest(msgspec.Struct, frozen=True):
    """Waiting for the world: `until(run)` is asked every `every` seconds and when the flow is woken.

    True goes on, False rests on, an exception unwinds. After `limit` seconds the rest fails with DeadlineExceeded.
    """

    name: str
    until: Decider
    every: Pause = 5.0
    limit: float | None = None
    undo: Action | None = None
    retry: Retry = NO_RETRY
    undo_retry: Retry = UNDO_RETRY
    needs: str | None = None
    since: int = 1
    retired: int | None = None


Stage = Step | Rest


class Flow(msgspec.Struct, frozen=True):
    """An operation as a line of stages, in the version that this code is."""

    op: str
    stages: tuple[Stage, ...]
    version: int = 1

    def __post_init__(self) -> None:
        names, present = self.names, [s for s in self.stages if s.retired is None]
        if not present or len(set(names)) != len(names):
            raise ValueError(f"flow {self.op}: stages need distinct names: {names}")
        last = present[-1]
        if any(isinstance(stage, Step) and stage.light and (stage.atomic or stage is last) for stage in self.stages):
            raise ValueError(f"flow {self.op}: a light step writes nothing itself and is not the last")
        if max(max(stage.since, stage.retired or 1) for stage in self.stages) > self.version:
            raise ValueError(f"flow {self.op}: a stage is newer than version {self.version}")

    @property
    def names(self) -> list[str]:
        return [stage.name for stage in self.stages]

    @property
    def first(self) -> Stage:
        """Where a new flow begins."""
        return next(stage for stage in self.stages if stage.retired is None)

    def index(self, name: str | None) -> int:
        """Place of a stage; that of the first for None. KeyError for a stage that this code does not know."""
        name = self.first.name if name is None else name
        for place, stage in enumerate(self.stages):
            if stage.name == name:
                return place
        raise KeyError(f"flow {self.op} has no stage {name}")

    def after(self, name: str) -> Stage | None:
        """The stage that follows; None at the end."""
        later = self.stages[self.index(name) + 1 :]
        return next((stage for stage in later if stage.retired is None), None)

    def version_at(self, name: str) -> int:
        """The lowest version that may go on with a flow at this stage: it knows what was done, and what was not."""
        place = self.index(name)
        passed = [max(stage.since, stage.retired or 1) for stage in self.stages[:place]]
        return max(self.stages[place].since, *passed, 1)

    def scope(self, there: Callable[[str], bool]) -> Scope:
        """What may be taken of this operation where those needs are met that `there` says."""
        waiting: list[str | None] = [s.name for s in self.stages if s.needs is not None and not there(s.needs)]
        before_first = [None] if self.first.name in waiting else []
        return Scope(self.op, self.version, self.names, [*waiting, *before_first])


def flow(op: str, *stages: Stage, version: int = 1) -> Flow:
    """A flow's table of contents."""
    return Flow(op, stages, version)


def step(
    do: Action,
    *,
    undo: Action | None = None,
    retry: Retry = NO_RETRY,
    atomic: bool = False,
    light: bool = False,
    name: str | None = None,
    needs: str | None = None,
    since: int = 1,
    retired: int | None = None,
) -> Step:
    """A stage that does something; named as its function."""
    return Step(
        name or do.__name__, do, undo, retry, atomic=atomic, light=light, needs=needs, since=since, retired=retired
    )


def rest(
    until: Decider,
    *,
    every: Pause = 5.0,
    limit: float | None = None,
    undo: Action | None = None,
    retry: Retry = NO_RETRY,
    name: str | None = None,
    since: int = 1,
    retired: int | None = None,
) -> Rest:
    """A stage that waits; named as its condition."""
    return Rest(name or until.__name__, until, every, limit, undo, retry, since=since, retired=retired)
