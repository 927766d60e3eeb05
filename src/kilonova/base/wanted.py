"""Whether what a thread works at is wanted still: its server may be deleted meanwhile, or the process may end."""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Callable, Iterator

_ask: contextvars.ContextVar[Callable[[], None] | None] = contextvars.ContextVar("wanted", default=None)


@contextlib.contextmanager
def asking(ask: Callable[[], None]) -> Iterator[None]:
    """For the body, in this thread: `ask` raises what ends it early."""
    token = _ask.set(ask)
    try:
        yield
    finally:
        _ask.reset(token)


def check() -> None:
    """Between the parts of what takes long, and while something is waited for."""
    if (ask := _ask.get()) is not None:
        ask()
