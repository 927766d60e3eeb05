"""Waiting in tests: for what comes by itself, in short steps; what takes long by the clock is not waited for at all."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from kilonova.base import clock

Found = TypeVar("Found")

PATIENCE = 20.0


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
