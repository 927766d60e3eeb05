"""One line of work per instance: jobs of one instance run one after another, those of different instances in parallel.

A bounded number of threads serves all lanes. Every kind of work has a limit, and a few threads that no other kind
takes: what waits for a guest or for another service keeps only its like waiting. A job that waits for its kind holds no
thread. A delete goes to the head of its lane and asks the job before it to give way.
"""

from __future__ import annotations

import collections
import concurrent.futures
import dataclasses
import logging
import threading
from collections.abc import Callable, Mapping
from typing import Any

from kilonova.base import present

LOG = logging.getLogger(__name__)

IDLE_SECONDS = 30.0

BUILD_KIND = "build"
BOOT_KIND = "boot"
"""Starting a guest, or rebooting it: waits for Neutron."""
GUEST_KIND = "guest"
"""Work that waits for what a guest does: as long as its user pleases."""
VOLUME_KIND = "volume"
"""Taking a volume from a guest: waits for both, the guest and Cinder."""
DELETE_KIND = "delete"
"""Waits for Neutron and Placement."""
EVENT_KIND = "event"
"""Asking Neutron again because of an event."""


def limits(workers: int, builds: int) -> Mapping[str, int]:
    """How many jobs of a kind run at once on a host of `workers` threads.

    `builds`: how many servers are built at once, 0 for as many as there are threads.
    """
    half, few = max(1, workers // 2), max(1, workers // 8)
    return {
        BUILD_KIND: builds or workers,
        BOOT_KIND: half,
        GUEST_KIND: half,
        VOLUME_KIND: few,
        DELETE_KIND: half,
        EVENT_KIND: few,
    }


class Preempted(Exception):
    """The job was asked to give way and did."""


class Closed(BaseException):
    """The agent ends: the job stops where it is, undoes nothing, and is taken up at the next start."""


class Turn:
    """A job's right to work on its instance; long jobs look at it between their steps."""

    def __init__(self) -> None:
        self._preempted = threading.Event()

    @property
    def preempted(self) -> bool:
        return self._preempted.is_set()

    def preempt(self) -> None:
        self._preempted.set()

    def check(self) -> None:
        """Raises Preempted when something more important waits."""
        if self._preempted.is_set():
            raise Preempted


Job = Callable[[Turn], Any]


def then(first: concurrent.futures.Future[Any], follow: Callable[[], Any]) -> concurrent.futures.Future[Any]:
    """What `follow` returns or raises once `first` is there; the error of `first` where that has one."""
    made: concurrent.futures.Future[Any] = concurrent.futures.Future()

    def done(ended: concurrent.futures.Future[Any]) -> None:
        if ended.cancelled():
            made.cancel()
            made.set_running_or_notify_cancel()
            return
        try:
            ended.result()
            made.set_result(follow())
        except BaseException as exc:  # noqa: BLE001 - the waiter of the future gets it, whatever it is
            made.set_exception(exc)

    first.add_done_callback(done)
    return made


@dataclasses.dataclass(eq=False)
class _Entry:
    fn: Job
    kind: str | None
    turn: Turn
    future: concurrent.futures.Future[Any]
    context: Any = dataclasses.field(default_factory=present.current)
    """For whom the job works, like whoever gave it."""


@dataclasses.dataclass(eq=False)
class _Lane:
    waiting: collections.deque[_Entry] = dataclasses.field(default_factory=collections.deque)
    running: _Entry | None = None


class Lanes:
    """`limits`: kind of work -> how many of it run at once. `workers`: how many jobs run at once in all, but at least
    one of each kind.
    """

    def __init__(self, workers: int, limits: Mapping[str, int] | None = None) -> None:
        self._limits = dict(limits or {})
        self._own = max(1, workers // 16)
        """Threads of each kind that no other one takes."""
        self._workers = max(workers, self._own * len(self._kinds))
        self._lanes: dict[str, _Lane] = {}
        self._ready: dict[str, None] = {}
        self._running: collections.Counter[str | None] = collections.Counter()
        self._threads = 0
        self._idle = 0
        self._stopping = False
        self._changed = threading.Condition()

    def submit(
        self, key: str, fn: Job, *, kind: str | None = None, preempt: bool = False
    ) -> concurrent.futures.Future[Any]:
        """Queue `fn` on the lane `key`. Raises RuntimeError after stop().

        `preempt`: go before all that waits there, and ask what runs there to give way.
        """
        entry = _Entry(fn, kind, Turn(), concurrent.futures.Future())
        with self._changed:
            if self._stopping:
                raise RuntimeError("the lanes are closed")
            lane = self._lanes.setdefault(key, _Lane())
            if preempt:
                lane.waiting.appendleft(entry)
                if lane.running is not None:
                    lane.running.turn.preempt()
            else:
                lane.waiting.append(entry)
            if lane.running is None:
                self._ready.setdefault(key)
            self._wake()
        return entry.future

    def busy(self, key: str) -> bool:
        """Whether anything runs or waits on the lane."""
        with self._changed:
            return key in self._lanes

    @property
    def depth(self) -> int:
        """Jobs that run or wait."""
        with self._changed:
            return sum(len(lane.waiting) + (lane.running is not None) for lane in self._lanes.values())

    def stop(self, timeout: float) -> bool:
        """Take no more jobs, drop those that wait, give running ones `timeout` seconds; True when all ended.

        What is dropped is in the journal and is taken up at the next start.
        """
        with self._changed:
            self._stopping = True
            for lane in self._lanes.values():
                for entry in lane.waiting:
                    entry.future.cancel()
                lane.waiting.clear()
            self._ready.clear()
            self._changed.notify_all()
            return self._changed.wait_for(lambda: not any(lane.running for lane in self._lanes.values()), timeout)

    def _wake(self) -> None:
        # An idle thread counts as idle until it runs again: those that were told of earlier jobs take these.
        if len(self._ready) > self._idle and self._threads < self._workers:
            self._threads += 1
            threading.Thread(target=self._work, name="lane", daemon=True).start()
        else:
            self._changed.notify()

    def _work(self) -> None:
        while True:
            with self._changed:
                taken = self._take()
                while taken is None:
                    self._idle += 1
                    woken = self._changed.wait(IDLE_SECONDS)
                    self._idle -= 1
                    taken = self._take()
                    if taken is None and (self._stopping or not woken):
                        self._threads -= 1
                        return
            self._run(*taken)

    def _take(self) -> tuple[str, _Entry] | None:
        for key in self._ready:
            lane = self._lanes[key]
            kind = lane.waiting[0].kind
            if not self._has_room(kind):
                continue
            del self._ready[key]
            lane.running = lane.waiting.popleft()
            self._running[kind] += 1
            return key, lane.running
        return None

    @property
    def _kinds(self) -> tuple[str | None, ...]:
        """Also the one of work that has none."""
        return (None, *self._limits)

    def _has_room(self, kind: str | None) -> bool:
        running = self._running[kind]
        if kind is not None and running >= self._limits.get(kind, self._workers):
            return False
        others = sum(max(self._running[each], self._own) for each in self._kinds if each != kind)
        return running < self._own or others + running < self._workers

    def _run(self, key: str, entry: _Entry) -> None:
        try:
            if entry.future.set_running_or_notify_cancel():
                _settle(entry)
        finally:
            with self._changed:
                self._running[entry.kind] -= 1
                lane = self._lanes[key]
                lane.running = None
                if lane.waiting:
                    self._ready.setdefault(key)
                else:
                    del self._lanes[key]
                self._changed.notify_all()


def _settle(entry: _Entry) -> None:
    try:
        with present.working(entry.context):
            result = entry.fn(entry.turn)
        entry.future.set_result(result)
    except BaseException as exc:  # noqa: BLE001 - the waiter of the future gets it, whatever it is
        entry.future.set_exception(exc)
