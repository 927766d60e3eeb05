"""Steps that depend on one another, run as early and as parallel as their needs allow."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Protocol

from kilonova.cloud.errors import CloudError


@dataclasses.dataclass(frozen=True)
class Step:
    """One thing to do. `once` names a stamp: when it is there the step has been done for good and is skipped."""

    name: str
    work: Callable[[], None]
    needs: Sequence[str] = ()
    log: Path | None = None
    once: Path | None = None
    note: str = ""
    """What is worth saying of it when it takes long."""


class Reporter(Protocol):
    """Who shows the progress."""

    def plan(self, steps: Sequence[Step]) -> None: ...
    def started(self, step: Step) -> None: ...
    def finished(self, step: Step, seconds: float) -> None: ...
    def skipped(self, step: Step) -> None: ...
    def lasting(self, steps: Sequence[Step]) -> None: ...
    def failed(self, step: Step, error: BaseException) -> None: ...


class Silent:
    """Shows nothing: for tests and for the library."""

    def plan(self, steps: Sequence[Step]) -> None:
        pass

    def started(self, step: Step) -> None:
        pass

    def finished(self, step: Step, seconds: float) -> None:
        pass

    def skipped(self, step: Step) -> None:
        pass

    def lasting(self, steps: Sequence[Step]) -> None:
        pass

    def failed(self, step: Step, error: BaseException) -> None:
        pass


LONG = 15.0
"""Seconds without an end of any step after which those that run are told."""


class StepFailed(CloudError):
    """A step failed: its name, its cause, and the log to read."""

    def __init__(self, step: Step, cause: BaseException) -> None:
        log = (cause.log if isinstance(cause, CloudError) else None) or step.log
        super().__init__(f"{step.name}: {cause}", log)
        self.step = step


def check(steps: Sequence[Step]) -> None:
    """Refuse doubled names, needs that nobody provides, and circles."""
    names = [step.name for step in steps]
    if len(set(names)) != len(names):
        raise ValueError(f"steps share a name: {sorted({name for name in names if names.count(name) > 1})}")
    done: set[str] = set()
    left = list(steps)
    while left:
        next_round = [step for step in left if not done.issuperset(step.needs)]
        if len(next_round) == len(left):
            raise ValueError(f"needs can never be met: {[step.name for step in left]}")
        done |= {step.name for step in left} - {step.name for step in next_round}
        left = next_round


def run(steps: Iterable[Step], reporter: Reporter | None = None, workers: int = 6) -> dict[str, float]:
    """Run every step after what it needs; returns seconds by name.

    After a failure nothing new begins; what has begun is waited for, then `StepFailed` is raised.
    """
    plan = list(steps)
    check(plan)
    show = reporter or Silent()
    show.plan(plan)
    took: dict[str, float] = {}
    failure: StepFailed | None = None
    waiting = {step.name: step for step in plan}
    running: dict[concurrent.futures.Future[float], Step] = {}
    with concurrent.futures.ThreadPoolExecutor(workers, "step") as pool:
        while waiting or running:
            if failure is None:
                for step in [step for step in waiting.values() if all(need in took for need in step.needs)]:
                    running[pool.submit(perform, step, show)] = waiting.pop(step.name)
            if not running:
                break
            ended, _ = concurrent.futures.wait(running, LONG, return_when=concurrent.futures.FIRST_COMPLETED)
            if not ended:
                show.lasting(list(running.values()))
            for future in ended:
                step = running.pop(future)
                error = future.exception()
                if error is None:
                    took[step.name] = future.result()
                    continue
                show.failed(step, error)
                failure = failure or StepFailed(step, error)
    if failure is not None:
        raise failure
    return took


def perform(step: Step, show: Reporter) -> float:
    if step.once is not None and step.once.exists():
        show.skipped(step)
        return 0.0
    show.started(step)
    begin = time.monotonic()
    step.work()
    if step.once is not None:
        step.once.parent.mkdir(parents=True, exist_ok=True)
        step.once.touch()
    seconds = time.monotonic() - begin
    show.finished(step, seconds)
    return seconds
