"""Waiting in tests: for what comes by itself, in short steps; what takes long by the clock is not waited for at all."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

from kilonova.base import clock

Found = TypeVar("Found")

PATIENCE = 20.0


def of_this_thread(instead: Callable[[float], object]) -> Callable[[float], object]:
    """A `time.sleep` in whose place this thread calls `instead`; other threads of the process sleep as ever."""
    own, sleep = threading.get_ident(), time.sleep
    return lambda seconds: (instead if threading.get_ident() == own else sleep)(seconds)


class Late(AssertionError):
    """Something did not happen in time."""


def until(condition: Callable[[], Found], seconds: float = PATIENCE, what: str = "", *, every: float = 0.01) -> Found:
    """The first true answer of the condition."""
    ends = time.monotonic() + seconds
    while not (found := condition()):
        if time.monotonic() > ends:
            raise Late(f"{what or 'what the test waits for'} not within {seconds} s")
        time.sleep(every)
    return found


class Ahead(clock.Source):
    """The machine's time, and what a test lets pass on top of it."""

    def __init__(self) -> None:
        self._seconds = 0.0

    def forward(self, seconds: float) -> None:
        self._seconds += seconds

    def nanoseconds(self) -> int:
        return super().nanoseconds() + int(self._seconds * 1e9)

    def monotonic(self) -> float:
        return super().monotonic() + self._seconds


class Held(Mapping[str, float]):
    """Latencies of a fake driver, in place of `_latency`: calls of these methods last until `release`."""

    def __init__(self, *methods: str) -> None:
        self._methods = methods
        self._reached, self._word = threading.Event(), threading.Event()

    def reached(self) -> None:
        """Wait until a call is held."""
        if not self._reached.wait(PATIENCE):
            raise Late(f"nobody calls {' or '.join(self._methods)}")

    def release(self) -> None:
        self._word.set()

    def __getitem__(self, method: str) -> float:
        if method not in self._methods:
            raise KeyError(method)
        self._reached.set()
        self._word.wait(PATIENCE)
        return 0.0

    def __iter__(self) -> Iterator[str]:
        return iter(self._methods)

    def __len__(self) -> int:
        return len(self._methods)
