"""The cells: which there are, how to reach their databases, and asking many of them at once."""

from __future__ import annotations

import concurrent.futures
import logging
import threading
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import msgspec
from oslo_config import cfg

from kilonova.base import clock, pools
from kilonova.db import templates
from kilonova.db.api import cell_mappings, instance_mappings
from kilonova.db.api.cell_mappings import CELL0_UUID
from kilonova.db.engine import Database, UnusableDatabase
from kilonova.db.failures import LOST, UNUSABLE, DatabaseError, lacks_tables
from kilonova.db.query import Row

LOG = logging.getLogger(__name__)
T = TypeVar("T")

REFRESH_SECONDS = 60.0
RETRY_SECONDS = 10.0
"""So long the last known list serves before the API database is asked again, when it did not answer."""

SCATTER_WORKERS = 32
"""Questions that one cell may have to answer at a time; one that hangs must not use up what the others need."""

SCATTER_TIMEOUT = 60.0

__all__ = ["CELL0_UUID", "LOST", "Cell", "CellDown", "Cells", "NoApiDatabaseError", "UnknownCellError"]


class UnknownCellError(Exception):
    """No cell has this uuid."""


class NoApiDatabaseError(Exception):
    """[api_database] connection is not set: this service knows its own cell only."""


class Cell(msgspec.Struct, frozen=True):
    """One cell; `id` is its mapping's number in the API database."""

    id: int
    uuid: str
    name: str | None
    transport_url: str
    database: Database
    disabled: bool

    @property
    def is_cell0(self) -> bool:
        """Whether this is the cell of servers that found no host; it has no bus."""
        return self.uuid == CELL0_UUID


class CellDown(msgspec.Struct, frozen=True):
    """A cell that did not answer (in time)."""

    uuid: str
    reason: str


class Cells:
    """Databases by cell. The mappings are read again after a minute, or when an unknown cell is asked for.

    While the API database is away the last known ones serve: what happens in a cell needs no other database.

    `patient`: as of Database.
    """

    def __init__(self, conf: cfg.ConfigOpts, *, patient: bool = False) -> None:
        self._conf = conf
        self._patient = patient
        self._lock = threading.Lock()
        self._databases: dict[str, Database] = {}
        self._cells: dict[str, Cell] = {}
        self._read_at: float | None = None
        self._failed_at = float("-inf")
        self._reading = threading.Lock()
        self._pools: dict[str, pools.ThreadPool] = {}
        self._api = self._from(conf.api_database) if conf.api_database.connection else None
        self._own = self._from(conf.database) if conf.database.connection else None
        if self._own is not None:
            self._databases[conf.database.connection] = self._own

    @property
    def has_api(self) -> bool:
        """Whether this service may use the API database."""
        return self._api is not None

    @property
    def api(self) -> Database:
        """The API database. Raises NoApiDatabaseError."""
        if self._api is None:
            raise NoApiDatabaseError("[api_database] connection is not set")
        return self._api

    @property
    def own(self) -> Database:
        """The database of [database] connection: the own cell's."""
        if self._own is None:
            raise NoApiDatabaseError("[database] connection is not set")
        return self._own

    @property
    def cell0(self) -> Cell:
        """The cell of servers that found no host."""
        return self.cell(CELL0_UUID)

    def cell(self, uuid: str) -> Cell:
        """One cell. Raises UnknownCellError."""
        known = self._known()
        if uuid not in known:
            known = self.refresh()
        try:
            return known[uuid]
        except KeyError:
            raise UnknownCellError(uuid) from None

    def all(self, include_cell0: bool = True) -> list[Cell]:
        """Every cell by its mapping's number; disabled ones too (they only take no new servers)."""
        return [cell for cell in self._known().values() if include_cell0 or not cell.is_cell0]

    def for_instance(self, instance_uuid: str) -> Cell | None:
        """The cell an instance is in; None when it is unknown or in no cell yet."""
        mapping = self.api.query(instance_mappings.instance_mapping_get, instance_uuid)
        if mapping is None or mapping["cell_uuid"] is None:
            return None
        return self.cell(mapping["cell_uuid"])

    def refresh(self) -> dict[str, Cell]:
        """Read the mappings now. Raises what a database raises that is away."""
        found = self.api.query(cell_mappings.cell_mapping_list)
        with self._lock:
            self._cells = {mapping["uuid"]: self._cell(mapping) for mapping in found}
            self._read_at = clock.monotonic()
            return self._cells

    def scatter(
        self, fn: Callable[[Cell], T], cells: Iterable[Cell] | None = None, timeout: float = SCATTER_TIMEOUT
    ) -> dict[str, T | CellDown]:
        """`fn(cell)` for many cells at once (default: all), by uuid, in the order of the cells.

        A cell whose database is away, or that needs more than `timeout` seconds, answers CellDown; other exceptions,
        those of a database that is there among them, are raised: a refused question makes no server vanish.
        """
        asked = list(self.all() if cells is None else cells)
        deadline = clock.monotonic() + timeout
        pending = {cell.uuid: self._ask(fn, cell) for cell in asked}
        return {uuid: _answer(uuid, future, deadline) for uuid, future in pending.items()}

    def ask(self, fn: Callable[[Cell], T], cell: Cell) -> T | CellDown:
        """`fn(cell)` in the caller's thread; CellDown when its database is away, or is silent (silence.py)."""
        try:
            return fn(cell)
        except (*LOST, DatabaseError) as exc:
            return _down(cell.uuid, exc)

    def wait(self) -> None:
        """Until the databases that the configuration names answer, as patiently as it says. Raises OperationalError."""
        for database in filter(None, (self._api, self._own)):
            database.wait()

    def wait_for_api(self) -> None:
        """Like `wait`, for the API database alone: the cells may come and go. Raises NoApiDatabaseError."""
        self.api.wait()

    def dispose(self) -> None:
        """Close every pooled connection."""
        for database in {*self._databases.values(), *filter(None, [self._api])}:
            database.dispose()

    def _from(self, group: cfg.ConfigOpts.GroupAttr, url: str | None = None) -> Database:
        return Database.from_group(group, url, patient=self._patient)

    def _known(self) -> dict[str, Cell]:
        if self._read_at is None:
            return self.refresh()
        due = max(self._read_at + REFRESH_SECONDS, self._failed_at + RETRY_SECONDS)
        # One asks; nobody else waits for a database that may not answer.
        if clock.monotonic() > due and self._reading.acquire(blocking=False):
            try:
                return self.refresh()
            except LOST as exc:
                LOG.warning("the list of cells could not be read, the last known one serves: %s", exc)
                self._failed_at = clock.monotonic()
            finally:
                self._reading.release()
        return self._cells

    def _cell(self, mapping: Row) -> Cell:
        url = templates.fill(mapping["database_connection"], self._conf.database.connection)
        bus = templates.fill(mapping["transport_url"], getattr(self._conf, "transport_url", None))
        return Cell(
            id=mapping["id"],
            uuid=mapping["uuid"],
            name=mapping["name"],
            transport_url=bus,
            database=self._database(url),
            disabled=bool(mapping["disabled"]),
        )

    def _database(self, url: str) -> Database:
        if url not in self._databases:
            self._databases[url] = self._made(url)
        return self._databases[url]

    def _made(self, url: str) -> Database:
        """One cell's mistaken URL takes no other cell away."""
        try:
            return self._from(self._conf.database, url)
        except UNUSABLE as exc:
            made = UnusableDatabase(url, exc)
            LOG.error("the database URL %s of a cell cannot be used: %s", made.name, exc)
            return made

    def _ask(self, fn: Callable[[Cell], T], cell: Cell) -> concurrent.futures.Future[T] | CellDown:
        with self._lock:
            pool = self._pools.get(cell.uuid)
            if pool is None:
                pool = self._pools[cell.uuid] = pools.ThreadPool(f"cell-{cell.id}", SCATTER_WORKERS)
        try:
            return pool.offer(fn, cell)
        except pools.Full:
            return CellDown(cell.uuid, "too many questions to this cell are waiting for an answer")


def _answer(uuid: str, future: concurrent.futures.Future[Any] | CellDown, deadline: float) -> Any:
    if isinstance(future, CellDown):
        return future
    try:
        return future.result(timeout=max(0.0, deadline - clock.monotonic()))
    except concurrent.futures.TimeoutError:
        return CellDown(uuid, "no answer in time")
    except (*LOST, DatabaseError) as exc:
        return _down(uuid, exc)


def _down(uuid: str, exc: Exception) -> CellDown:
    """A database that is away, or was never created; raises every other error."""
    if not isinstance(exc, LOST) and not lacks_tables(exc):
        raise exc
    LOG.warning("cell %s does not answer: %s", uuid, exc)
    return CellDown(uuid, str(exc))
