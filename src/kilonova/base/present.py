"""For whom a thread works at present: whose request id, user and project its log lines carry.

Threads serve many requests one after another. A context is a thread's present one inside of `working` only: nothing
else sets it, and whoever comes next finds none.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TypeVar

from oslo_context import context as oslo_context

Present = TypeVar("Present", bound=oslo_context.RequestContext | None)


def current() -> oslo_context.RequestContext | None:
    """The context for which this thread works, None when it works for nobody."""
    return oslo_context.get_current()


def become(context: oslo_context.RequestContext | None) -> None:
    """Work for this context up to the end of the `working` around it: for a context that is known inside of it only."""
    # oslo.context, where oslo.log looks, has no call to take a context away again.
    oslo_context._request_store.context = context


@contextlib.contextmanager
def working(context: Present) -> Iterator[Present]:
    """Work for this context, or for nobody, and afterwards for whom one worked before."""
    before = current()
    become(context)
    try:
        yield context
    finally:
        become(before)
