"""Finds flows that are due, leases them, and drives them on a bounded pool; keeps the leases, and watches over them.

The queue is the flow table: nothing is leased that no worker is free for. A conductor that dies holds its flows until
their leases lapse; there is no other recovery.
"""

from __future__ import annotations

import collections
import functools
import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence

from kilonova.base import clock, log, pools, present
from kilonova.flow import offers
from kilonova.flow.engine import Engine, StoreFailed
from kilonova.flow.run import Lease
from kilonova.flow.store import ENDED, FlowRow, FlowStore, LeaseLost, NewFlow, State, Unless

LOG = logging.getLogger(__name__)

OnLapse = Callable[[Lease], None]
Stores = Callable[[], Iterable[FlowStore]]

_REFRESH = 30.0
"""Seconds after which the list of databases is read again."""


def fence(lease: Lease) -> None:
    """What is done about a worker whose lease lapses under it: it may not write or send any more."""
    LOG.error("lease of flow %s (%s) lapses; its worker is cut off", lease.row.id, lease.row.op)


class Leases:
    """The flows this process holds; every third of their time they are renewed, each database's by a thread of its own:
    one that does not answer keeps only its own leases waiting.
    """

    def __init__(self, seconds: float, step_limit: float, on_lapse: OnLapse = fence) -> None:
        self.seconds = seconds
        self.step_limit = step_limit
        self._on_lapse = on_lapse
        self._held: dict[str, Lease] = {}
        self._renewing: dict[str, threading.Thread] = {}
        self._lock = threading.Lock()

    @property
    def milliseconds(self) -> int:
        return int(self.seconds * 1000)

    def hold(self, store: FlowStore, row: FlowRow, asked_at: float) -> Lease:
        """Start to keep a lease that was asked for at `asked_at` (monotonic)."""
        lease = Lease(store, row, asked_at + self.seconds * 0.9)
        with self._lock:
            self._held[row.id] = lease
        return lease

    def let_go(self, lease: Lease) -> None:
        """Keep it no longer. The flow may have been leased again meanwhile: that lease is kept."""
        with self._lock:
            if self._held.get(lease.row.id) is lease:
                del self._held[lease.row.id]

    def holds(self, flow_id: str) -> bool:
        return flow_id in self._held

    def renew(self) -> None:
        """Prolong every lease; those that cannot be prolonged and are about to lapse are cut off.

        A database that is away is no fault of the worker: it may write and send nothing more, that is all. A step that
        is beyond its limit hangs; what is done about that is `on_lapse`'s.
        """
        with self._lock:
            held = list(self._held.values())
        by_store: dict[str, list[Lease]] = collections.defaultdict(list)
        for lease in held:
            if clock.monotonic() - lease.began < self.step_limit:
                by_store[lease.store.name].append(lease)
        self._renew_all(by_store)
        for lease in held:
            if not lease.lost and clock.monotonic() > lease.until - self.seconds * 0.1 and self.holds(lease.row.id):
                lease.lost = True
                hangs = clock.monotonic() - lease.began >= self.step_limit
                (self._on_lapse if hangs else fence)(lease)

    def _renew_all(self, by_store: Mapping[str, Sequence[Lease]]) -> None:
        """Ask each database that is not still busy with the last asking; they get a moment to answer."""
        self._renewing = {name: thread for name, thread in self._renewing.items() if thread.is_alive()}
        asked = {
            name: _thread(functools.partial(self._renew, leases), f"flow-renew-{name}")
            for name, leases in by_store.items()
            if name not in self._renewing
        }
        self._renewing |= asked
        ends = clock.monotonic() + self.seconds * 0.1
        for thread in asked.values():
            thread.join(max(0.0, ends - clock.monotonic()))

    def _renew(self, leases: Sequence[Lease]) -> None:
        asked_at = clock.monotonic()
        try:
            kept = leases[0].store.renew({lease.row.id: lease.epoch for lease in leases}, self.milliseconds)
        except Exception as exc:  # noqa: BLE001 - the database may be away for a moment; the watchdog decides
            LOG.warning("leases of %s could not be renewed: %s", leases[0].store.name, exc)
            return
        for lease in leases:
            if lease.row.id in kept:
                lease.until = asked_at + self.seconds * 0.9
            elif self.holds(lease.row.id):
                lease.lost = True


class Signal:
    """Tells a waiting scanner to look now; one that was not waiting notices at its next wait."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._count = 0

    @property
    def count(self) -> int:
        return self._count

    def give(self) -> None:
        with self._changed:
            self._count += 1
            self._changed.notify_all()

    def wait(self, seen: int, timeout: float) -> None:
        """Until a signal was given since `seen`, or for `timeout` seconds."""
        with self._changed:
            self._changed.wait_for(lambda: self._count != seen, timeout)


class Dispatcher:
    """One conductor's share of the flows of all databases it reaches.

    Each database has a thread that looks for due flows: one that does not answer keeps only its own thread waiting.
    """

    def __init__(
        self,
        engine: Engine,
        stores: Stores,
        *,
        lease: float = 60.0,
        poll: float = 2.0,
        workers: int = 16,
        step_limit: float = 900.0,
        on_lapse: OnLapse = fence,
    ) -> None:
        self.engine = engine
        self.leases = Leases(lease, step_limit, on_lapse)
        self.counts: collections.Counter[str] = collections.Counter()
        self._stores = stores
        self._poll = poll
        self._pool = pools.ThreadPool("flow", workers)
        self._free = threading.Semaphore(workers)
        self._batch = max(1, workers // 4)
        self._signals: dict[str, Signal] = {}
        self._short: set[str] = set()
        """Databases that may have due flows for which no worker was free."""
        self._scanners: dict[str, threading.Thread] = {}
        self._followed: dict[str, FlowStore] = {}
        self._keepers: list[threading.Thread] = []
        self._stopped = threading.Event()

    def start(self) -> None:
        for target, name in ((self._follow_stores, "flow-stores"), (self._keep, "flow-leases")):
            self._keepers.append(_thread(target, name))

    def stop(self, timeout: float = 30.0) -> None:
        """Lease no more; each flow is handed back at the end of its present stage, or when its lease lapses."""
        self.engine.stopping.set()
        for signal in list(self._signals.values()):
            signal.give()
        self._pool.stop(timeout)
        self._stopped.set()
        for thread in (*self._keepers, *self._scanners.values()):
            thread.join(1.0)

    def wait(self) -> None:
        self._stopped.wait()

    def take(self, store: FlowStore, flow: NewFlow, unless: Unless | None = None) -> bool:
        """A cast arrived: put its flow down if nobody has, and drive it now if a worker is free.

        False if the work is already in hands (a repeated cast), or was, as `unless` says.
        """
        if not store.offer(flow, unless):
            return self.resume(store, flow.subject_id, flow.op)
        if not self._begin(store, flow.id):
            store.arrived(flow.id)
            self._signal(store.name).give()
        return True

    def resume(self, store: FlowStore, subject_id: str, op: str) -> bool:
        """A cast arrived: drive the subject's offered or waiting flow now, whatever its time.

        False if the work is already in hands.
        """
        rows = store.active(subject_id, op)
        free = [row for row in rows if not self.leases.holds(row.id)]
        if free and self._begin(store, free[0].id):
            return True
        arrived = [row for row in rows if row.state is State.OFFERED and store.arrived(row.id)]
        if arrived:
            self._signal(store.name).give()
        return bool(arrived)

    def _begin(self, store: FlowStore, flow_id: str) -> bool:
        if self.engine.stopping.is_set() or not self._free.acquire(blocking=False):
            return False
        asked_at = clock.monotonic()
        row = None
        try:
            row = store.take(flow_id, self.engine.worker, self.leases.milliseconds, self.engine.scopes())
        finally:
            if row is None:
                self._free.release()
                self._tell_short()
        if row is None:
            return False
        self._drive(self.leases.hold(store, row, asked_at))
        return True

    def _follow_stores(self) -> None:
        """Gives every database its thread; new cells, and new addresses of known ones, are noticed by and by."""
        while not self.engine.stopping.is_set():
            try:
                self._followed = {store.name: store for store in self._stores()}
                for name in self._followed:
                    if name not in self._scanners or not self._scanners[name].is_alive():
                        self._scanners[name] = _thread(functools.partial(self._scan, name), f"flow-{name}")
            except Exception as exc:  # noqa: BLE001 - the API database may be away; the next look tries again
                self._failed("the list of cells could not be read", exc)
            self._stopped.wait(_REFRESH if self._scanners else self._poll)

    def _scan(self, name: str) -> None:
        signal = self._signal(name)
        while not self.engine.stopping.is_set() and (store := self._followed.get(name)) is not None:
            seen = signal.count
            if not self._scan_once(store):
                signal.wait(seen, self._poll)
        self._short.discard(name)

    def _scan_once(self, store: FlowStore) -> int:
        """Lease due flows for free workers. None is held while the database is asked whether anything is due: one that
        does not answer keeps no worker from the others.
        """
        try:
            if not store.any_due(self.engine.scopes()):
                return 0
        except Exception as exc:  # noqa: BLE001 - a database may be away; the next look tries again
            LOG.warning("flows of %s could not be read: %s", store.name, exc)
            return 0
        return self._take_due(store)

    def _take_due(self, store: FlowStore) -> int:
        free = 0
        self._short.add(store.name)
        while free < self._batch and self._free.acquire(blocking=False):
            free += 1
        if free:
            self._short.discard(store.name)
        rows: list[FlowRow] = []
        asked_at = clock.monotonic()
        try:
            if free:
                rows = store.take_due(self.engine.worker, self.leases.milliseconds, free, self.engine.scopes())
        except Exception as exc:  # noqa: BLE001 - a database may be away; the next look tries again
            LOG.warning("flows of %s could not be read: %s", store.name, exc)
        if spare := free - len(rows):
            self._free.release(spare)
            self._tell_short()
        for row in rows:
            self._drive(self.leases.hold(store, row, asked_at))
        return len(rows)

    def _drive(self, lease: Lease) -> None:
        """A free worker was taken for it before."""
        self.counts["leased"] += 1
        try:
            with present.working(offers.asked_by(lease.row)):
                self._pool.submit(self._work, lease)
        except RuntimeError:
            self.leases.let_go(lease)
            self._free.release()

    def _work(self, lease: Lease) -> None:
        state: State | None = None
        try:
            state = self.engine.run(lease)
            self.counts[str(state)] += 1
        except LeaseLost:
            self.counts["lease_lost"] += 1
            LOG.warning("flow %s (%s) is in other hands now", lease.row.id, lease.row.op)
        except Exception as exc:  # noqa: BLE001 - whatever it is, the flow's own worker can do no more about it
            self.counts["broken"] += 1
            row = lease.row
            self._failed(f"flow {row.id} ({row.op}) stopped; it is tried again when its lease lapses", exc)
        finally:
            self.leases.let_go(lease)
            self._free.release()
            if state in ENDED:
                # It may have children.
                self._signal(lease.store.name).give()
            self._tell_short()

    def _failed(self, what: str, exc: Exception) -> None:
        """A traceback is for what is unforeseen: a database that is away is a line."""
        cause = (exc.__cause__ if isinstance(exc, StoreFailed) else None) or exc
        log.failed(LOG, what, exc, foreseen=self.engine.passes(cause))

    def _signal(self, name: str) -> Signal:
        return self._signals.setdefault(name, Signal())

    def _tell_short(self) -> None:
        """A worker is free: those look again that had none when they looked."""
        for name in list(self._short):
            self._signal(name).give()

    def _keep(self) -> None:
        while not self._stopped.wait(self.leases.seconds / 3):
            self.leases.renew()


def _thread(target: Callable[[], None], name: str) -> threading.Thread:
    thread = threading.Thread(target=target, name=name, daemon=True)
    thread.start()
    return thread
