"""The snapshot: hosts of all cells, their aggregates and servers, refreshed by what changed.

A refresh reads per cell what changed since the last one (services, compute nodes,
servers); a full sweep now and then proves the tails right. Requests read no host
from a database. A provider that Placement names and the snapshot does not know
causes a refresh at once.
"""

from __future__ import annotations

import dataclasses
import datetime
import logging
import threading
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Protocol

from kilonova.base import clock
from kilonova.scheduler.snapshot.host import Aggregate, Host, Row, Service
from kilonova.scheduler.snapshot.placements import Placements

LOG = logging.getLogger(__name__)

OVERLAP = datetime.timedelta(seconds=30)
"""How far a tail reaches back, for writers whose clocks are behind."""


@dataclasses.dataclass(frozen=True)
class Tail:
    """Rows of one cell: all that live, or those that changed (deleted ones have `deleted` set)."""

    services: Sequence[Row]
    nodes: Sequence[Row]
    instances: Sequence[Row]
    """uuid, host, deleted."""


class Source(Protocol):
    """Where hosts come from (see source.py)."""

    def cells(self) -> Mapping[str, bool]:
        """{cell uuid: may take new servers}, without cell0."""
        ...

    def tails(self, since: datetime.datetime | None) -> Mapping[str, Tail]:
        """{cell uuid: Tail}: everything (None), or what changed since; a cell that does not answer is missing."""
        ...

    def aggregates(self) -> list[Aggregate]: ...


class Snapshot:
    """Thread-safe. Hosts are shared objects: change them only under `lock`."""

    def __init__(self, source: Source, *, spacing: float = 1.0, sweep: float = 60.0) -> None:
        self._source = source
        self._spacing = spacing
        self._sweep = sweep
        self.lock = threading.RLock()
        self._refreshing = threading.Lock()
        self._hosts: dict[str, Host] = {}
        self._strangers: set[str] = set()
        self._services: dict[tuple[str, str], Service] = {}
        self._aggregates: dict[int, Aggregate] = {}
        self._placements = Placements()
        self._enabled: frozenset[str] = frozenset()
        self._since: datetime.datetime | None = None
        self._refreshed = float("-inf")
        self._swept = float("-inf")

    # --- reading ---------------------------------------------------------------------------

    def by_uuid(self, uuids: Collection[str]) -> list[Host]:
        """Hosts by node uuid (which is their provider's); those in no enabled cell or without service are left out."""
        self.refresh()
        with self.lock:
            unknown = set(uuids) - set(self._hosts) - self._strangers
        if unknown:
            self.refresh(force=True)
        with self.lock:
            self._strangers |= unknown - set(self._hosts)
            found = [self._hosts[each] for each in uuids if each in self._hosts]
            return [host for host in found if self._usable(host)]

    def by_name(self, host: str | None, node: str | None) -> list[Host]:
        """Nodes of a host, by node name, or both."""
        self.refresh()
        found = self._named(host, node)
        if not found:
            self.refresh(force=True)
            found = self._named(host, node)
        return found

    def _named(self, host: str | None, node: str | None) -> list[Host]:
        with self.lock:
            return [
                each
                for each in self._hosts.values()
                if (not host or each.host == host) and (not node or each.nodename == node)
            ]

    def all(self) -> list[Host]:
        self.refresh()
        with self.lock:
            return [host for host in self._hosts.values() if self._usable(host)]

    def _usable(self, host: Host) -> bool:
        return host.cell_uuid in self._enabled and (host.cell_uuid, host.host) in self._services

    def aggregates(self) -> list[Aggregate]:
        """All aggregates, as announced by the API and read with every sweep."""
        self.refresh()
        with self.lock:
            return list(self._aggregates.values())

    def minimum_version(self) -> int:
        """The lowest service version of all compute hosts, 0 without any; as service_minimum_version has it."""
        self.refresh()
        with self.lock:
            in_use = [service.version for service in self._services.values() if not service.forced_down]
        return min(in_use, default=0)

    def is_placed(self, instance: str) -> bool:
        """The server is on a host already, and not merely on its way."""
        with self.lock:
            return self._placements.settled(instance)

    # --- placing ---------------------------------------------------------------------------

    def consume(self, host: Host, *, instance: str, memory_mb: int, disk_gb: int, vcpus: int) -> None:
        """Believe at once that a server goes to a host, until the host reports."""
        with self.lock:
            host.consume(memory_mb=memory_mb, disk_gb=disk_gb, vcpus=vcpus, now=clock.naive_now())
            self._placements.assume(instance, host.host)

    def forget(self, host: Host, instance: str) -> None:
        """The server does not go there after all."""
        with self.lock:
            self._placements.drop(instance, host=host.host)
            host.forget()

    # --- what compute hosts and the API announce -------------------------------------------

    def instances_seen(self, host: str, uuids: Iterable[str]) -> None:
        """A host has (also) these servers."""
        with self.lock:
            cell = next((each.cell_uuid for each in self._hosts.values() if each.host == host), None)
            for uuid in uuids:
                self._placements.put(uuid, cell, host)

    def instance_gone(self, host: str, uuid: str) -> None:
        with self.lock:
            self._placements.drop(uuid, host=host)

    def instances_are(self, host: str, uuids: Collection[str]) -> None:
        """A host has exactly these servers, and those on their way to it."""
        with self.lock:
            self._placements.exactly(host, uuids)

    def aggregates_changed(self, changed: Iterable[Aggregate]) -> None:
        with self.lock:
            self._aggregates |= {each.id: each for each in changed}
            self._spread()

    def aggregate_gone(self, id: int) -> None:
        with self.lock:
            self._aggregates.pop(id, None)
            self._spread()

    # --- refreshing ------------------------------------------------------------------------

    def refresh(self, *, force: bool = False) -> None:
        """Read what changed, unless the last look is younger than the spacing; one thread reads, others wait for it."""
        asked = clock.monotonic()
        if not force and asked - self._refreshed < self._spacing:
            return
        with self._refreshing:
            if self._refreshed > asked or (not force and clock.monotonic() - self._refreshed < self._spacing):
                return
            whole = self._since is None or clock.monotonic() - self._swept >= self._sweep
            self._read(whole=whole)

    def _read(self, *, whole: bool) -> None:
        began = clock.naive_now()
        started = clock.monotonic()
        cells = self._source.cells()
        tails = self._source.tails(None if whole else self._since)
        aggregates = self._source.aggregates() if whole else None
        with self.lock:
            self._enabled = frozenset(uuid for uuid, enabled in cells.items() if enabled)
            for cell, tail in tails.items():
                self._take(cell, tail, whole=whole)
            if aggregates is not None:
                self._aggregates = {each.id: each for each in aggregates}
            if whole:
                self._strangers.clear()
                self._swept = started
            self._spread()
            self._since = began - OVERLAP
            self._refreshed = started

    def _take(self, cell: str, tail: Tail, *, whole: bool) -> None:
        if whole:
            listed = {row["uuid"] for row in tail.nodes}
            self._hosts = {uuid: host for uuid, host in self._hosts.items() if host.cell_uuid != cell or uuid in listed}
            self._services = {key: each for key, each in self._services.items() if key[0] != cell}
            self._placements.sweep(cell, ((row["uuid"], row["host"]) for row in tail.instances if row["host"]))
        else:
            for row in tail.instances:
                self._take_instance(cell, row)
        for row in tail.services:
            self._take_service(cell, row)
        for row in tail.nodes:
            self._take_node(cell, row)

    def _take_service(self, cell: str, row: Row) -> None:
        if row.get("deleted"):
            self._services.pop((cell, row["host"]), None)
        else:
            self._services[cell, row["host"]] = Service.from_row(row)

    def _take_node(self, cell: str, row: Row) -> None:
        known = self._hosts.get(row["uuid"])
        if row.get("deleted"):
            if known is not None and known.cell_uuid == cell:
                del self._hosts[row["uuid"]]
            return
        if row["free_disk_gb"] is None:
            return  # the host has not reported its resources yet
        if known is None or known.cell_uuid != cell:
            self._hosts[row["uuid"]] = Host(cell, row)
        else:
            known.update(row, clock.naive_now())

    def _take_instance(self, cell: str, row: Row) -> None:
        if row.get("deleted"):
            self._placements.drop(row["uuid"])
        elif row["host"] is None:
            self._placements.not_placed(row["uuid"])
        else:
            self._placements.put(row["uuid"], cell, row["host"])

    def _spread(self) -> None:
        """Give every host its service, aggregates and servers."""
        by_host: dict[str, list[Aggregate]] = defaultdict(list)
        for aggregate in self._aggregates.values():
            for name in aggregate.hosts:
                by_host[name].append(aggregate)
        for host in self._hosts.values():
            host.aggregates = tuple(by_host.get(host.host, ()))
            host.instances = self._placements.on(host.host)
            service = self._services.get((host.cell_uuid, host.host))
            if service is not None:
                host.service = service
