"""Waiting for a service that is away, where a thread has the time to wait: a host's operation, not a user's request.

The work in a `with patient(...)` block waits; everything else fails at once, and its caller decides.
"""

from __future__ import annotations

import contextlib
import contextvars
import logging
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

import msgspec

from kilonova.base import clock, wanted
from kilonova.base.retry import grown

LOG = logging.getLogger(__name__)

T = TypeVar("T")

SHORTEST, LONGEST, SLICE = 0.25, 10.0, 0.25
"""Seconds between two tries (they double), and between two looks whether waiting is still wanted."""


class Patience(msgspec.Struct, frozen=True):
    """`check` is called while waiting and raises what ends it early."""

    seconds: float
    check: Callable[[], None]


_present: contextvars.ContextVar[Patience | None] = contextvars.ContextVar("patience", default=None)


@contextlib.contextmanager
def patient(seconds: float, check: Callable[[], None] = lambda: None) -> Iterator[None]:
    """What is asked of other services in this block, and in this thread, waits up to `seconds` for one that is away."""
    token = _present.set(Patience(seconds, check))
    try:
        with wanted.asking(check):
            yield
    finally:
        _present.reset(token)


def outlast(fn: Callable[[], T], passes: Callable[[Exception], bool], what: str) -> T:
    """`fn()`, repeated while its failures pass and the present block's patience lasts; the last one is raised."""
    present = _present.get()
    if present is None:
        return fn()
    ends: float | None = None
    tries = 0
    # Within the repeated call nobody waits by himself: one patience, not one inside the other.
    token = _present.set(None)
    try:
        while True:
            try:
                return fn()
            except Exception as exc:
                ends = clock.monotonic() + present.seconds if ends is None else ends
                if not passes(exc) or clock.monotonic() >= ends:
                    raise
                LOG.log(logging.INFO if tries else logging.WARNING, "%s waits: %s", what, exc)
            _pause(present, min(ends, clock.monotonic() + grown(SHORTEST, 2.0, tries, LONGEST)))
            tries += 1
    finally:
        _present.reset(token)


def _pause(present: Patience, until: float) -> None:
    present.check()
    while (left := until - clock.monotonic()) > 0:
        time.sleep(min(SLICE, left))
        present.check()
