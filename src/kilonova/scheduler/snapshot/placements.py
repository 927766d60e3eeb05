"""Which servers are on which host, as the databases say, the hosts announce and we ourselves decided."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable

from kilonova.base import clock

ASSUMED = 300.0
"""Seconds for which a placement that no database confirmed is believed."""


class Placements:
    """Not thread-safe: its owner locks. `on(host)` is one living set per host name."""

    def __init__(self, now: Callable[[], float] = clock.monotonic) -> None:
        self._now = now
        self._where: dict[str, tuple[str | None, str]] = {}
        self._on: defaultdict[str, set[str]] = defaultdict(set)
        self._assumed: dict[str, float] = {}

    def on(self, host: str) -> set[str]:
        return self._on[host]

    def settled(self, uuid: str) -> bool:
        """A server is on a host, by a database's or the host's own account."""
        return uuid in self._where and uuid not in self._assumed

    def put(self, uuid: str, cell: str | None, host: str) -> None:
        """A server is there."""
        self._remove(uuid)
        self._assumed.pop(uuid, None)
        self._where[uuid] = (cell, host)
        self._on[host].add(uuid)

    def assume(self, uuid: str, host: str) -> None:
        """We sent a server there; its record will name the host later."""
        self.put(uuid, None, host)
        self._assumed[uuid] = self._now() + ASSUMED

    def drop(self, uuid: str, *, host: str | None = None) -> None:
        """A server is nowhere any more, or (with `host`) no longer on that one."""
        if host is None or self._where.get(uuid, (None, None))[1] == host:
            self._remove(uuid)
            self._assumed.pop(uuid, None)

    def not_placed(self, uuid: str) -> None:
        """The record names no host; what we assumed goes on holding."""
        if uuid not in self._assumed:
            self._remove(uuid)

    def exactly(self, host: str, uuids: Collection[str]) -> None:
        """A host tells all it has; servers on their way to it stay."""
        for uuid in self._on[host] - set(uuids):
            if uuid not in self._assumed:
                self._remove(uuid)
        for uuid in uuids:
            cell = self._where.get(uuid, (None, host))[0]
            self.put(uuid, cell, host)

    def sweep(self, cell: str, rows: Iterable[tuple[str, str]]) -> None:
        """All (server, host) of a cell; assumptions that got too old go."""
        listed = dict(rows)
        for uuid in [uuid for uuid, (where, _) in self._where.items() if where == cell and uuid not in listed]:
            self._remove(uuid)
        for uuid, host in listed.items():
            self.put(uuid, cell, host)
        for uuid in [uuid for uuid, until in self._assumed.items() if until < self._now()]:
            del self._assumed[uuid]
            self._remove(uuid)

    def _remove(self, uuid: str) -> None:
        found = self._where.pop(uuid, None)
        if found is not None:
            self._on[found[1]].discard(uuid)
