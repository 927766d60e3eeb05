"""Calls whose caller may stop waiting: they run on threads of their own, so that nothing else is held up by them."""

from __future__ import annotations

import concurrent.futures
import contextvars
import threading
from collections.abc import Callable
from typing import Any

from kilonova.base import present

MOST = 64
"""Calls at once; with so many of them under way a caller carries out its own itself."""


class Background:
    """Thread-safe. The process does not wait for such calls when it ends: whatever they do can be repeated."""

    def __init__(self, most: int = MOST) -> None:
        self._room = threading.BoundedSemaphore(most)
        self._room_for_offers = threading.BoundedSemaphore(most // 2)

    def submit(self, fn: Callable[[], Any]) -> concurrent.futures.Future[Any]:
        """Begin the call, for whom the thread works at present."""
        if (future := self._begin(fn)) is None:
            future = concurrent.futures.Future()
            _carry_out(fn, future)
        return future

    def offer(self, fn: Callable[[], Any]) -> concurrent.futures.Future[Any] | None:
        """The same for a call that others make later: None when there is no room for it.

        Half of the room is left to calls that somebody has to wait for.
        """
        if not self._room_for_offers.acquire(blocking=False):
            return None
        if (future := self._begin(fn)) is None:
            self._room_for_offers.release()
            return None
        future.add_done_callback(lambda _: self._room_for_offers.release())
        return future

    def _begin(self, fn: Callable[[], Any]) -> concurrent.futures.Future[Any] | None:
        if not self._room.acquire(blocking=False):
            return None
        future: concurrent.futures.Future[Any] = concurrent.futures.Future()
        whole, ctxt = contextvars.copy_context(), present.current()

        def run() -> None:
            try:
                with present.working(ctxt):
                    whole.run(_carry_out, fn, future)
            finally:
                self._room.release()

        threading.Thread(target=run, name="background", daemon=True).start()
        return future


def _carry_out(fn: Callable[[], Any], future: concurrent.futures.Future[Any]) -> None:
    try:
        future.set_result(fn())
    except BaseException as exc:  # noqa: BLE001 - the waiter of the future gets it, whatever it is
        future.set_exception(exc)
