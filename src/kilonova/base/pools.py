"""Bounded thread pools. A full pool makes its caller wait or refuses; nothing queues without limit.

A job works for whom its caller worked when it was given: its log lines carry that request's id.
"""

from __future__ import annotations

import concurrent.futures
import logging
import threading
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from kilonova.base import clock, present

LOG = logging.getLogger(__name__)
T = TypeVar("T")


class Full(Exception):
    """The pool has no room now."""


class Closed(RuntimeError):
    """The pool takes no more jobs: it was stopped, or the interpreter ends."""


class Meter(Protocol):
    """Where a pool reports: how long a job waited and ran (seconds), and how many are in it."""

    def __call__(self, pool: str, *, waited: float, ran: float, inside: int) -> None: ...


class ThreadPool:
    """At most `workers` jobs run and `backlog` wait; when both are full `submit` blocks and `offer` raises Full."""

    def __init__(self, name: str, workers: int, backlog: int = 0, meter: Meter | None = None) -> None:
        self.name = name
        self.workers = workers
        self._room = threading.BoundedSemaphore(workers + backlog)
        self._executor = concurrent.futures.ThreadPoolExecutor(workers, thread_name_prefix=name)
        self._meter = meter
        self._lock = threading.Lock()
        self._inside = 0

    @property
    def inside(self) -> int:
        """Jobs running or waiting."""
        return self._inside

    def submit(self, fn: Callable[..., T], *args: Any, **kwargs: Any) -> concurrent.futures.Future[T]:
        """Run `fn` in the pool; waits for room. Raises Closed."""
        self._room.acquire()
        return self._start(fn, args, kwargs)

    def offer(self, fn: Callable[..., T], *args: Any, **kwargs: Any) -> concurrent.futures.Future[T]:
        """Run `fn` in the pool, or raise Full at once. Raises Closed."""
        if not self._room.acquire(blocking=False):
            raise Full(self.name)
        return self._start(fn, args, kwargs)

    def _start(self, fn: Callable[..., T], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        with self._lock:
            self._inside += 1
        try:
            return self._executor.submit(self._run, clock.monotonic(), present.current(), fn, args, kwargs)
        except RuntimeError as exc:
            self._leave()
            raise Closed(self.name) from exc

    def _run(
        self, queued: float, context: Any, fn: Callable[..., T], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> T:
        began = clock.monotonic()
        try:
            with present.working(context):
                return fn(*args, **kwargs)
        except Exception:
            LOG.debug("job in pool %s failed", self.name, exc_info=True)
            raise
        finally:
            inside = self._leave()
            if self._meter is not None:
                self._meter(self.name, waited=began - queued, ran=clock.monotonic() - began, inside=inside)

    def _leave(self) -> int:
        with self._lock:
            self._inside -= 1
            inside = self._inside
        self._room.release()
        return inside

    def stop(self, timeout: float | None = None) -> bool:
        """Take no more jobs and wait up to `timeout` seconds for those inside; True when all ended."""
        self._executor.shutdown(wait=False)
        deadline = None if timeout is None else clock.monotonic() + timeout
        for thread in list(self._executor._threads):
            thread.join(None if deadline is None else max(0.0, deadline - clock.monotonic()))
        return self._inside == 0
