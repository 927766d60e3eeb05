"""Repeating what may fail for a moment: bounded attempts, exponential backoff, full jitter."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

import msgspec

T = TypeVar("T")


class Backoff(msgspec.Struct, frozen=True):
    """Waits between attempts: the n-th is drawn from [floor, min(cap, base * factor**n)] seconds."""

    attempts: int = 4
    base: float = 0.1
    cap: float = 5.0
    factor: float = 2.0
    floor: float = 0.0

    def waits(self, rng: Callable[[], float] = random.random) -> Iterator[float]:
        """One wait fewer than there are attempts."""
        for n in range(self.attempts - 1):
            top = grown(self.base, self.factor, n, self.cap)
            yield self.floor + max(0.0, top - self.floor) * rng()


def grown(base: float, factor: float, times: int, cap: float) -> float:
    """`base` multiplied by `factor` so many times, at most `cap`."""
    try:
        return min(cap, base * float(factor) ** times)
    except OverflowError:
        return cap


def call(
    fn: Callable[[], T],
    *,
    on: tuple[type[BaseException], ...] | Callable[[BaseException], bool],
    backoff: Backoff | None = None,
    sleep: Callable[[float], object] = time.sleep,
    before_retry: Callable[[BaseException, int], object] | None = None,
) -> T:
    """Call `fn` until it returns, at most `backoff.attempts` times.

    `on` says which exceptions are worth another attempt: classes, or a predicate. The last one is raised as it is.
    """
    retryable = on if callable(on) and not isinstance(on, tuple) else _of_classes(on)
    for attempt, wait in enumerate((backoff or Backoff()).waits(), start=1):
        try:
            return fn()
        except Exception as exc:
            if not retryable(exc):
                raise
            if before_retry is not None:
                before_retry(exc, attempt)
            sleep(wait)
    return fn()


def _of_classes(classes: tuple[type[BaseException], ...]) -> Callable[[BaseException], bool]:
    return lambda exc: isinstance(exc, classes)
