"""Drives one leased flow from stage to stage until it rests, ends, or is no longer ours."""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable, Mapping
from typing import Any

from kilonova.base import clock, log
from kilonova.flow.plan import Again, DeadlineExceeded, Finish, Flow, Rest, Retry, Stage, Step
from kilonova.flow.run import Describe, Lease, Run, describe
from kilonova.flow.seal import CannotOpen, Seal
from kilonova.flow.store import Change, ChildRefused, EventKind, FlowEvent, LeaseLost, Scope, State

LOG = logging.getLogger(__name__)

_REST_KEY = "resting_since"
_SEALED_KEY = "sealed_since"
_AWAY_KEY = "away_since"

UNKNOWN_PAUSE = 30.0
"""Seconds for which a flow is left alone whose stage this code does not know."""

SEALED_PATIENCE = 120.0
"""Seconds for which a flow waits for a conductor that can open its secrets."""

SHORTEST_WAIT, LONGEST_WAIT = 0.5, 15.0
"""Seconds between two tries while something else is away: half of the time that it was away, within these bounds."""


class StoreFailed(Exception):
    """The flow's own database did not take a stage's end: the stage counts as not done and is repeated."""


class _StageFailed(Exception):
    """An atomic step raised inside its transaction."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


class Engine:
    """Knows the flows by their operation and what they work with (`world`). Holds no state of any run.

    `passes` says which failures only tell that something else is away for now: those are waited for until the flow's
    deadline, count as no try, and leave no undo stuck. `there` says whether what a stage needs is there now. `between`
    is called after each write, before the next stage starts; the test kit kills the worker there.
    """

    def __init__(
        self,
        flows: Mapping[str, Flow],
        world: Any,
        seal: Seal,
        worker: str,
        *,
        describe_failure: Describe = describe,
        passes: Callable[[BaseException], bool] = lambda _: False,
        stopping: threading.Event | None = None,
        between: Callable[[Run], None] | None = None,
        rng: Callable[[], float] = random.random,
        there: Callable[[str], bool] = lambda need: True,
    ) -> None:
        self.flows = dict(flows)
        self.world = world
        self.seal = seal
        self.worker = worker
        self.stopping = stopping or threading.Event()
        self._describe = describe_failure
        self.passes = passes
        self._between = between
        self._rng = rng
        self._there = there

    def scopes(self) -> list[Scope]:
        """What this worker may take now."""
        return [flow.scope(self._there) for flow in self.flows.values()]

    def run(self, lease: Lease) -> State:
        """Go on with a flow until it rests, ends or must be given back; returns the state it was left in.

        Raises LeaseLost when another worker has it; nothing was written then.
        """
        flow = self.flows[lease.row.op]
        run = Run(lease, self.world, {}, self.worker)
        if not self._unseal(run):
            return run.row.state
        if not self._begin(flow, run):
            return run.row.state
        while self._move(flow, run):
            if self._between is not None:
                self._between(run)
            if self.stopping.is_set() or self._lacks(flow, run):
                self._hand_back(run)
                break
        return run.row.state

    def _begin(self, flow: Flow, run: Run) -> bool:
        """Stand at a stage; a flow at one that this code does not know is left, as it is, to code that does."""
        row = run.row
        try:
            position = flow.stages[flow.index(row.position)].name
        except KeyError as exc:
            LOG.warning("flow %s of %s is left to a newer conductor: %s", row.op, row.subject_id, exc)
            self._nap(run, row.state, UNKNOWN_PAUSE, row.tries, None)
            return False
        if flow.version_at(position) > row.code_version:
            # Before anything is done that an older conductor would not know how to undo.
            self._write(run, row.state, position, tries=row.tries)
        if row.state is State.OFFERED:
            # Nothing has happened yet that would be worth a write.
            run.moved(State.RUNNING, position, row.tries, run.row.code_version)
        return True

    def _lacks(self, flow: Flow, run: Run) -> bool:
        """Whether something is not there that the next stage needs."""
        stage = flow.stages[flow.index(run.row.position)]
        return stage.needs is not None and run.row.state is not State.UNWINDING and not self._there(stage.needs)

    def _unseal(self, run: Run) -> bool:
        """Read the secrets. A flow that this process has no key for is left to another one for a while.

        Conductors that know their own cell only have other keys by default than those of the API database. When nobody
        has the key any more, the flow goes on without its secrets: it must not rest for ever.
        """
        try:
            run.secrets = self.seal.open(run.row.sealed)
        except CannotOpen as exc:
            since = run.frame.setdefault(_SEALED_KEY, clock.seconds())
            if clock.seconds() - since < SEALED_PATIENCE:
                self._nap(run, run.row.state, 1.0 + 2.0 * self._rng(), run.row.tries, None)
                return False
            LOG.error("flow %s %s goes on without its secrets: %s", run.row.op, run.subject_id, exc)
        else:
            run.frame.pop(_SEALED_KEY, None)
        return True

    def _move(self, flow: Flow, run: Run) -> bool:
        """One stage; True if the next one may follow at once."""
        stage = flow.stages[flow.index(run.row.position)]
        run.stage = stage.name
        run.guard()
        began = run.lease.began = clock.monotonic()
        if run.row.state is State.UNWINDING:
            return self._undo(flow, stage, run, began)
        try:
            left = run.seconds_left
            if left is not None and left <= 0:
                raise DeadlineExceeded(f"{flow.op} did not end in time")
            return (
                self._rest(flow, stage, run, began) if isinstance(stage, Rest) else self._step(flow, stage, run, began)
            )
        except (LeaseLost, StoreFailed):
            raise
        except _StageFailed as exc:
            return self._raised(flow, stage, run, exc.error, began)
        except Exception as exc:  # noqa: BLE001 - whatever a stage raises decides the flow's way
            return self._raised(flow, stage, run, exc, began)

    def _raised(self, flow: Flow, stage: Stage, run: Run, exc: Exception, began: float) -> bool:
        if isinstance(exc, Finish):
            return self._end(run, State.DONE, run.event(EventKind.SUCCEEDED, str(exc), clock.monotonic() - began))
        run.drop_children()
        if isinstance(exc, Again):
            begun = not run.uncalled or stage is not flow.first
            state = run.row.state if begun else State.OFFERED
            return self._nap(run, state, exc.wait, run.row.tries, run.event(EventKind.RETRIED, str(exc)))
        return self._failed(stage, run, exc, began)

    # Forward.

    def _step(self, flow: Flow, stage: Step, run: Run, began: float) -> bool:
        if stage.atomic:
            return self._advance(flow, stage, run, began, within=lambda tx: self._within(tx, stage, run))
        stage.do(run)
        return self._advance(flow, stage, run, began)

    @staticmethod
    def _within(tx: Any, stage: Step, run: Run) -> None:
        run.begin_again()
        run.tx = tx
        try:
            stage.do(run)
        except Exception as exc:
            if run.lease.store.may_repeat(exc):
                raise
            raise _StageFailed(exc) from exc
        finally:
            run.tx = None

    def _rest(self, flow: Flow, stage: Rest, run: Run, began: float) -> bool:
        since = run.frame.setdefault(_REST_KEY, {}).setdefault(stage.name, clock.seconds())
        try:
            ready = stage.until(run)
        except (Finish, LeaseLost):
            raise
        except Exception as exc:
            # A look that fails for ever must not keep the rest from ending.
            self._check_limit(flow, stage, since, exc)
            raise
        if ready:
            run.frame.pop(_REST_KEY)
            return self._advance(flow, stage, run, began)
        self._check_limit(flow, stage, since)
        run.frame.pop(_AWAY_KEY, None)
        event = None if run.row.state is State.RESTING else run.event(EventKind.RESTED)
        every = stage.every(run) if callable(stage.every) else stage.every
        return self._nap(run, State.RESTING, every * (0.75 + 0.5 * self._rng()), 0, event)

    @staticmethod
    def _check_limit(flow: Flow, stage: Rest, since: float, cause: Exception | None = None) -> None:
        if stage.limit is not None and clock.seconds() - since > stage.limit:
            text = f"{flow.op} rested at {stage.name} for more than {stage.limit:.0f} s"
            raise DeadlineExceeded(text) from cause

    def _advance(
        self, flow: Flow, stage: Stage, run: Run, began: float, within: Callable[[Any], None] | None = None
    ) -> bool:
        run.frame.pop(_AWAY_KEY, None)
        following = flow.after(stage.name)
        done = run.event(EventKind.SUCCEEDED, None, clock.monotonic() - began)
        if following is None:
            return self._end(run, State.DONE, done, within)
        known = flow.version_at(following.name) <= run.row.code_version
        if isinstance(stage, Step) and stage.light and known:
            run.moved_lightly(following.name, done)
        else:
            self._write(run, State.RUNNING, following.name, done, within=within)
        return True

    # Failure.

    def _failed(self, stage: Stage, run: Run, exc: Exception, began: float) -> bool:
        if self.passes(exc):
            return self._outlast(stage, run, exc, clock.monotonic() - began)
        failures = run.row.tries + 1
        if not isinstance(exc, DeadlineExceeded) and stage.retry.covers(exc) and failures < stage.retry.attempts:
            LOG.warning("flow %s %s: %s failed (try %d): %s", run.row.op, run.subject_id, stage.name, failures, exc)
            event = run.event(EventKind.RETRIED, repr(exc), clock.monotonic() - began)
            return self._nap(run, run.row.state, stage.retry.wait(failures, self._rng), failures, event)
        trace = log.trace(exc)
        LOG.warning("flow %s %s: %s failed, unwinding: %s", run.row.op, run.subject_id, stage.name, exc, exc_info=trace)
        run.frame.pop(_REST_KEY, None)
        run.frame.pop(_AWAY_KEY, None)
        run.frame["failure"] = self._describe(exc)
        event = run.event(EventKind.FAILED, repr(exc), clock.monotonic() - began)
        self._write(run, State.UNWINDING, stage.name, event, reason=str(exc))
        return True

    def _outlast(self, stage: Stage, run: Run, exc: BaseException, duration: float) -> bool:
        """Try again later, whatever the stage's retry says; the flow's deadline, if it has one, ends that."""
        first = _AWAY_KEY not in run.frame
        away = clock.seconds() - run.frame.setdefault(_AWAY_KEY, clock.seconds())
        level = logging.WARNING if first else logging.INFO
        LOG.log(level, "flow %s %s: %s waits: %s", run.row.op, run.subject_id, stage.name, exc)
        event = run.event(EventKind.RETRIED, repr(exc), duration) if first else None
        wait = min(LONGEST_WAIT, max(SHORTEST_WAIT, away / 2)) * (0.75 + 0.5 * self._rng())
        return self._nap(run, run.row.state, wait, run.row.tries, event)

    def _undo(self, flow: Flow, stage: Stage, run: Run, began: float) -> bool:
        try:
            if stage.undo is not None:
                stage.undo(run)
        except LeaseLost:
            raise
        except Again as exc:
            return self._nap(run, State.UNWINDING, exc.wait, run.row.tries, run.event(EventKind.RETRIED, str(exc)))
        except Exception as exc:  # noqa: BLE001 - an undo is retried whatever it raised, then the flow is stuck
            if self.passes(exc):
                return self._outlast(stage, run, exc, clock.monotonic() - began)
            return self._undo_failed(stage.undo_retry, stage, run, exc)
        run.frame.pop(_AWAY_KEY, None)
        place = flow.index(stage.name)
        undone = run.event(EventKind.UNDONE, None, clock.monotonic() - began)
        if place == 0:
            return self._end(run, State.UNWOUND, undone)
        self._write(run, State.UNWINDING, flow.stages[place - 1].name, undone)
        return True

    def _undo_failed(self, retry: Retry, stage: Stage, run: Run, exc: Exception) -> bool:
        failures = run.row.tries + 1
        event = run.event(EventKind.UNDO_FAILED, repr(exc))
        if failures < retry.attempts:
            LOG.warning(
                "flow %s %s: undo of %s failed (try %d)", run.row.op, run.subject_id, stage.name, failures, exc_info=exc
            )
            return self._nap(run, State.UNWINDING, retry.wait(failures, self._rng), failures, event)
        LOG.error("flow %s of %s is stuck: undo of %s failed", run.row.op, run.subject_id, stage.name, exc_info=exc)
        self._write(run, State.STUCK, stage.name, event, reason=f"undo of {stage.name}: {exc}", release=True)
        return False

    # Writing.

    def _end(self, run: Run, state: State, event: FlowEvent, within: Callable[[Any], None] | None = None) -> bool:
        self._write(run, state, None, event, release=True, within=within)
        return False

    def _nap(self, run: Run, state: State, seconds: float, tries: int, event: FlowEvent | None) -> bool:
        wake_at = clock.milliseconds() + int(seconds * 1000)
        self._write(run, state, run.row.position, event, tries=tries, wake_at=wake_at, release=True)
        return False

    def _hand_back(self, run: Run) -> None:
        self._write(run, run.row.state, run.row.position, wake_at=clock.milliseconds(), release=True)

    def _write(
        self,
        run: Run,
        state: State,
        position: str | None,
        event: FlowEvent | None = None,
        *,
        tries: int = 0,
        wake_at: int | None = None,
        reason: str | None = None,
        release: bool = False,
        within: Callable[[Any], None] | None = None,
    ) -> None:
        flow = self.flows[run.row.op]
        version = run.row.code_version
        if position is not None and position in flow.names:
            version = max(version, flow.version_at(position))
        events = (*run.unwritten, *(() if event is None else (event,)))

        def change(tx: Any) -> Change:
            if within is not None:
                within(tx)
            return Change(
                state, position, wake_at, tries, run.changed_frame(), reason, release, run.drop_sealed, version,
                events, tuple(run.children),
            )  # fmt: skip

        try:
            run.lease.store.write(run.row.id, run.lease.epoch, change)
        except (LeaseLost, ChildRefused, _StageFailed):
            raise
        except Exception as exc:
            raise StoreFailed(f"could not store flow {run.row.id} at {position}: {exc}") from exc
        run.moved(state, position, tries, version)
