"""External events: a job announces what it will wait for, other services report it."""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from kilonova.base import clock
from kilonova.compute.lanes import Closed
from kilonova.contract import exceptions

LOG = logging.getLogger(__name__)

COMPLETED, FAILED, CANCELLED, CLOSED = "completed", "failed", "cancelled", "closed"
Pair = tuple[str, str]


@dataclasses.dataclass(eq=False)
class _Wait:
    missing: set[Pair]
    verdict: str | None = None
    """FAILED (with the event that brought it), CANCELLED or CLOSED; None while all is well."""
    cause: Pair | None = None


class ExternalEvents:
    """Implements `virt.driver.EventWaiter`. Thread-safe; an event may arrive while the body still runs."""

    def __init__(self, cancelled: Callable[[], Exception]) -> None:
        """`cancelled` makes what a waiter raises when its instance is to be deleted."""
        self._waits: dict[str, list[_Wait]] = {}
        self.closed = False
        """The agent ends."""
        self._refused: set[str] = set()
        self._changed = threading.Condition()
        self._cancelled = cancelled

    @contextlib.contextmanager
    def expect(self, uuid: str, events: Iterable[Pair], timeout: float) -> Iterator[None]:
        """Register, run the body, wait up to `timeout` seconds for all of (name, tag).

        Raises VirtualInterfaceCreateException when one is reported failed or does not come.
        """
        wait = _Wait(set(events))
        with self._changed:
            if uuid in self._refused:
                raise self._cancelled()
            self._waits.setdefault(uuid, []).append(wait)
        try:
            yield
            self._wait(uuid, wait, timeout)
        finally:
            self._forget(uuid, wait)

    def deliver(self, uuid: str, name: str, tag: str, status: str) -> bool:
        """Hand an event to whoever waits for it; False when nobody does."""
        pair = (name, tag)
        with self._changed:
            takers = [w for w in self._waits.get(uuid, ()) if pair in w.missing]
            for wait in takers:
                wait.missing.discard(pair)
                if status == FAILED:
                    wait.verdict, wait.cause = FAILED, pair
            self._changed.notify_all()
        return bool(takers)

    def refuse(self, uuid: str) -> None:
        """End all waits of the instance at once, and those that would begin until `allow`."""
        with self._changed:
            self._refused.add(uuid)
            for wait in self._waits.get(uuid, ()):
                wait.verdict = CANCELLED
            self._changed.notify_all()

    def allow(self, uuid: str) -> None:
        with self._changed:
            self._refused.discard(uuid)

    def pause(self, uuid: str, seconds: float) -> None:
        """Sleep, unless the instance is to be deleted: then what waiters raise is raised at once."""
        deadline = clock.monotonic() + seconds
        with self._changed:
            self._check(uuid)
            while (left := deadline - clock.monotonic()) > 0:
                self._changed.wait(left)
                self._check(uuid)

    def await_result(self, uuid: str, future: concurrent.futures.Future[Any]) -> Any:
        """The future's outcome, unless the instance is to be deleted before it is there."""
        future.add_done_callback(self._wake)
        with self._changed:
            while not future.done():
                self._check(uuid)
                self._changed.wait()
        return future.result()

    def _wake(self, _: object) -> None:
        with self._changed:
            self._changed.notify_all()

    def _check(self, uuid: str) -> None:
        if self.closed:
            raise Closed
        if uuid in self._refused:
            raise self._cancelled()

    def close(self) -> None:
        """The agent ends: let all waits end, and their jobs stop where they are. They raise Closed."""
        with self._changed:
            self.closed = True
            for wait in (each for waits in self._waits.values() for each in waits):
                wait.verdict = CLOSED
            self._changed.notify_all()

    def _wait(self, uuid: str, wait: _Wait, timeout: float) -> None:
        deadline = clock.monotonic() + timeout
        with self._changed:
            while wait.missing and wait.verdict is None:
                left = deadline - clock.monotonic()
                if left <= 0:
                    break
                self._changed.wait(left)
            verdict, missing = wait.verdict, sorted(wait.missing)
        if verdict == CLOSED:
            raise Closed
        if verdict == CANCELLED:
            raise self._cancelled()
        if verdict == FAILED and wait.cause is not None:
            raise _not_wired(uuid, f"{_named(wait.cause)} was reported as failed")
        if missing:
            raise _not_wired(uuid, f"{', '.join(map(_named, missing))} did not come within {timeout:g} s")

    def _forget(self, uuid: str, wait: _Wait) -> None:
        with self._changed:
            waits = self._waits[uuid]
            waits.remove(wait)
            if not waits:
                del self._waits[uuid]


def _named(event: Pair) -> str:
    name, tag = event
    return f"{name} of {tag}" if tag else name


def _not_wired(uuid: str, why: str) -> exceptions.VirtualInterfaceCreateException:
    LOG.error("instance %s: event %s", uuid, why)
    return exceptions.VirtualInterfaceCreateException(f"event {why}")
