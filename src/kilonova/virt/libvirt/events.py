"""What guests do by themselves: libvirt's lifecycle events as the agent's."""

from __future__ import annotations

import heapq
import itertools
import threading
from collections.abc import Callable, Mapping
from typing import Any, Final

import libvirt
from oslo_log import log

from kilonova.base import clock
from kilonova.virt.driver import GuestChange, GuestEvent

LOG = log.getLogger(__name__)

STOP_DELAY = 15.0
"""Seconds a stop is held back: a reboot is a stop and a start, and nobody should act on its first half."""

_CHANGES: Final[Mapping[int, GuestChange]] = {
    libvirt.VIR_DOMAIN_EVENT_STARTED: GuestChange.STARTED,
    libvirt.VIR_DOMAIN_EVENT_STOPPED: GuestChange.STOPPED,
    libvirt.VIR_DOMAIN_EVENT_SUSPENDED: GuestChange.PAUSED,
    libvirt.VIR_DOMAIN_EVENT_RESUMED: GuestChange.RESUMED,
    libvirt.VIR_DOMAIN_EVENT_PMSUSPENDED: GuestChange.SUSPENDED,
}

_SUSPENDED_DETAILS: Final[Mapping[int, GuestChange]] = {
    libvirt.VIR_DOMAIN_EVENT_SUSPENDED_POSTCOPY: GuestChange.POSTCOPY_STARTED,
    libvirt.VIR_DOMAIN_EVENT_SUSPENDED_MIGRATED: GuestChange.MIGRATION_COMPLETED,
}


def change_of(event: int, detail: int) -> GuestChange | None:
    """The agent's name of a lifecycle event; None for those it has no use for (defined, undefined ...)."""
    if event == libvirt.VIR_DOMAIN_EVENT_SUSPENDED and detail in _SUSPENDED_DETAILS:
        return _SUSPENDED_DETAILS[detail]
    return _CHANGES.get(event)


class Events:
    """Receives lifecycle events on libvirt's thread and delivers them on one of its own.

    libvirt's thread must never wait: a handler that asks libvirt something would block the answer to itself.
    """

    def __init__(
        self,
        deliver: Callable[[GuestEvent], None],
        stop_delay: float = STOP_DELAY,
        now: Callable[[], float] = clock.monotonic,
    ) -> None:
        self._deliver = deliver
        self._stop_delay = stop_delay
        self._now = now
        self._order = itertools.count()
        self._queue: list[tuple[float, int, GuestEvent]] = []
        self._latest: dict[str, int] = {}
        self._changed = threading.Condition()
        self._running = False
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        self._running = True
        self._thread = threading.Thread(target=self._run, name="guest-events", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Events not delivered yet are dropped: the agent compares all guests' states when it starts."""
        with self._changed:
            self._running = False
            self._changed.notify()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(timeout=5)

    def register(self, connection: libvirt.virConnect) -> None:
        connection.domainEventRegisterAny(None, libvirt.VIR_DOMAIN_EVENT_ID_LIFECYCLE, self._received, None)

    def _received(self, _connection: Any, domain: Any, event: int, detail: int, _opaque: Any) -> None:
        change = change_of(event, detail)
        if change is not None:
            self.put(GuestEvent(domain.UUIDString(), change))

    def put(self, event: GuestEvent) -> None:
        delay = self._stop_delay if event.change is GuestChange.STOPPED else 0.0
        with self._changed:
            number = next(self._order)
            self._latest[event.uuid] = number
            heapq.heappush(self._queue, (self._now() + delay, number, event))
            self._changed.notify()

    def _run(self) -> None:
        while (event := self._next()) is not None:
            try:
                self._deliver(event)
            except Exception:
                LOG.exception("Event %s of guest %s was not taken", event.change.name, event.uuid)

    def _next(self) -> GuestEvent | None:
        with self._changed:
            while self._running:
                wait = self._queue[0][0] - self._now() if self._queue else None
                if wait is not None and wait <= 0:
                    _, number, event = heapq.heappop(self._queue)
                    if self._is_current(number, event):
                        return event
                    continue
                self._changed.wait(wait)
        return None

    def _is_current(self, number: int, event: GuestEvent) -> bool:
        """A held-back stop counts only if nothing else was heard of the guest since."""
        is_latest = self._latest.get(event.uuid) == number
        if is_latest:
            del self._latest[event.uuid]
        return is_latest or event.change is not GuestChange.STOPPED
