"""Many timers on one thread; the work itself runs on a bounded pool, never twice at once for one timer."""

from __future__ import annotations

import dataclasses
import heapq
import itertools
import logging
import random
import threading
from collections.abc import Callable

from kilonova.base import clock, log, pools, present

LOG = logging.getLogger(__name__)


@dataclasses.dataclass(eq=False)
class Timer:
    """`spacing` and `initial_delay` in seconds; each run is moved by up to `jitter` (a share of the spacing)."""

    name: str
    fn: Callable[[], object]
    spacing: float
    jitter: float = 0.1
    initial_delay: float | None = None
    runs: int = 0
    failures: int = 0
    last_error: str | None = None
    last_seconds: float | None = None
    busy: bool = False
    again: bool = False
    cancelled: bool = False
    entry: int = -1

    def next_wait(self) -> float:
        if self.runs == 0 and self.initial_delay is not None:
            return self.initial_delay
        return self.spacing * (1 + self.jitter * (2 * random.random() - 1))  # noqa: S311


class Periodic:
    """Runs its timers between `start()` and `stop()`. A failing run is logged and counted, the timer goes on.

    `passes` says which failures only tell that something else is away for now: those are a line without a traceback.
    `workers`: how many run at once; None for as many as there are when it starts: one that waits for another service,
    maybe for minutes, keeps no other one waiting.
    """

    def __init__(
        self,
        name: str = "periodic",
        workers: int | None = None,
        *,
        passes: Callable[[BaseException], bool] = lambda _: False,
    ) -> None:
        self.name = name
        self._passes = passes
        self.timers: list[Timer] = []
        self._heap: list[tuple[float, int, Timer]] = []
        self._order = itertools.count()
        self._changed = threading.Condition()
        self._stopping = False
        self._thread: threading.Thread | None = None
        self._workers = workers
        self._pool: pools.ThreadPool | None = None

    def every(
        self,
        spacing: float,
        fn: Callable[[], object],
        *,
        name: str | None = None,
        jitter: float = 0.1,
        initial_delay: float | None = None,
    ) -> Timer:
        """Add a timer; it may be added while running."""
        timer = Timer(name or str(getattr(fn, "__name__", "timer")), fn, spacing, jitter, initial_delay)
        with self._changed:
            self.timers.append(timer)
            self._push(timer, timer.next_wait())
        return timer

    def trigger(self, timer: Timer) -> None:
        """Run the timer as soon as possible (once more, if it runs just now); its schedule starts anew from there."""
        with self._changed:
            timer.again = timer.busy
            if not timer.busy:
                self._push(timer, 0.0)

    def respace(self, timer: Timer, spacing: float) -> None:
        """Run the timer every `spacing` seconds; a new spacing counts from now."""
        with self._changed:
            if spacing != timer.spacing:
                timer.spacing, timer.initial_delay = spacing, None
                if not timer.busy:
                    self._push(timer, timer.next_wait())

    def start(self) -> None:
        self._pool = pools.ThreadPool(self.name, self._workers or len(self.timers) or 1, backlog=1000)
        self._thread = threading.Thread(target=self._loop, name=self.name, daemon=True)
        self._thread.start()

    def stop(self, timeout: float | None = 10.0) -> None:
        """No new runs; wait up to `timeout` seconds for those under way."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(timeout)
        if self._pool is not None:
            self._pool.stop(timeout)

    def _push(self, timer: Timer, wait: float) -> None:
        # An older entry of the timer stays in the heap and is passed over.
        timer.entry = next(self._order)
        heapq.heappush(self._heap, (clock.monotonic() + wait, timer.entry, timer))
        self._changed.notify_all()

    def _loop(self) -> None:
        while (timer := self._next_due()) is not None:
            assert self._pool is not None
            try:
                self._pool.submit(self._run, timer)
            except pools.Closed:
                return

    def _next_due(self) -> Timer | None:
        with self._changed:
            while not self._stopping:
                if not self._heap:
                    self._changed.wait()
                elif (wait := self._heap[0][0] - clock.monotonic()) > 0:
                    self._changed.wait(wait)
                else:
                    _, entry, timer = heapq.heappop(self._heap)
                    if entry == timer.entry and not timer.cancelled:
                        timer.busy = True
                        return timer
        return None

    def _run(self, timer: Timer) -> None:
        began = clock.monotonic()
        try:
            with present.working(None):
                timer.fn()
            timer.last_error = None
        except Exception as exc:  # noqa: BLE001 - it is told, and the timer goes on
            timer.failures += 1
            timer.last_error = f"{type(exc).__name__}: {exc}"
            log.failed(LOG, f"periodic task {timer.name} failed", exc, foreseen=self._passes(exc))
        finally:
            timer.runs += 1
            timer.last_seconds = clock.monotonic() - began
            with self._changed:
                self._push(timer, 0.0 if timer.again else timer.next_wait())
                timer.busy = timer.again = False
