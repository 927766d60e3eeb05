"""Graceful end of a process: refuse new work, stop taking leases, let current work end, hand back, close.

What hangs (a connection to a bus or database that does not answer) is left behind when its time is over.
"""

from __future__ import annotations

import enum
import logging
import signal
import threading
from collections.abc import Callable
from types import FrameType

from kilonova.base import clock

LOG = logging.getLogger(__name__)


class Phase(enum.IntEnum):
    """In the order in which they run."""

    REFUSE = 1
    STOP_LEASING = 2
    DRAIN = 3
    HAND_BACK = 4
    CLOSE = 5


Hook = Callable[[float], object]
"""Called with the seconds that are left; when it has not returned soon after, the rest goes on without it."""

SLACK_SECONDS = 2.0
"""What a hook has beyond its time; those for closing have it, too, when nothing is left."""


class Shutdown:
    """Collects what has to end and ends it, once, within `timeout` seconds."""

    def __init__(self, timeout: float = 60.0) -> None:
        self.timeout = timeout
        self.requested = threading.Event()
        self._hooks: list[tuple[Phase, str, Hook]] = []
        self._lock = threading.Lock()
        self._done = threading.Event()
        self._running = False

    def on(self, phase: Phase, name: str, hook: Hook) -> None:
        """Register a hook; within a phase the order is that of registration."""
        with self._lock:
            self._hooks.append((phase, name, hook))

    def request(self) -> None:
        """Ask for the end; `wait()` returns in the main thread, which then calls `run()`."""
        self.requested.set()

    def on_signals(self, *numbers: signal.Signals) -> None:
        """The first of these signals requests the end, a second one ends at once (default action)."""

        def handler(number: int, frame: FrameType | None) -> None:
            signal.signal(number, signal.SIG_DFL)
            self.request()

        for number in numbers or (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, handler)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the end is requested."""
        return self.requested.wait(timeout)

    def run(self) -> None:
        """Run all phases; a second call waits for the first.

        A hook that fails or hangs is logged and the rest goes on.
        """
        self.requested.set()
        with self._lock:
            first, self._running = not self._running, True
            hooks = sorted(self._hooks, key=lambda hook: hook[0])
        if not first:
            self._done.wait(self.timeout)
            return
        deadline = clock.monotonic() + self.timeout
        for phase, name, hook in hooks:
            left = max(0.0, deadline - clock.monotonic())
            thread = threading.Thread(target=_carry_out, args=(phase, name, hook, left), name="shutdown", daemon=True)
            thread.start()
            thread.join(left + SLACK_SECONDS)
            if thread.is_alive():
                LOG.warning("shutdown: %s hangs in phase %s and is left behind", name, phase.name)
        self._done.set()


def _carry_out(phase: Phase, name: str, hook: Hook, left: float) -> None:
    try:
        hook(left)
    except Exception:
        LOG.exception("shutdown: %s failed in phase %s", name, phase.name)
