"""What other services reported about the networks of servers and nobody has looked at yet, merged for each server.

However many reports come, a server has at most one job that looks and one that waits to look after it.
"""

from __future__ import annotations

import dataclasses
import threading

from kilonova.contract import objects
from kilonova.contract.context import RequestContext

MOST_PORTS = 3
"""Beyond so many single ports all of them are read at once, which costs as much as one."""


@dataclasses.dataclass
class News:
    """What is to be looked at for one server."""

    ctxt: RequestContext
    instance: objects.Instance
    changed: set[str] = dataclasses.field(default_factory=set)
    """Ports to be read again."""
    everything: bool = False
    deleted: set[str] = dataclasses.field(default_factory=set)
    """Ports that are gone."""

    def add_changed(self, port_id: str | None) -> None:
        if port_id:
            self.changed.add(port_id)
        self._merge(everything=not port_id)

    def add_deleted(self, port_id: str) -> None:
        self.deleted.add(port_id)
        self._merge()

    def _merge(self, everything: bool = False) -> None:
        self.everything |= everything or len(self.changed) > MOST_PORTS or len(self.deleted) > MOST_PORTS
        if self.everything:
            # Reading all finds out which of them are gone, too.
            self.changed.clear()
            self.deleted.clear()


class Inbox:
    """Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._news: dict[str, News] = {}

    def changed(self, ctxt: RequestContext, instance: objects.Instance, port_id: str | None) -> bool:
        """A network of the server changed, at that port or anywhere. True when somebody has to be sent to look."""
        with self._lock:
            news, new = self._of(ctxt, instance)
            news.add_changed(port_id)
            return new

    def deleted(self, ctxt: RequestContext, instance: objects.Instance, port_id: str) -> bool:
        """A port of the server was deleted. True when somebody has to be sent to look."""
        with self._lock:
            news, new = self._of(ctxt, instance)
            news.add_deleted(port_id)
            return new

    def take(self, uuid: str) -> News | None:
        """What there is about a server, for whoever looks now; what comes from here on is for another look."""
        with self._lock:
            return self._news.pop(uuid, None)

    def _of(self, ctxt: RequestContext, instance: objects.Instance) -> tuple[News, bool]:
        known = self._news.get(instance.uuid)
        if known is None:
            known = self._news[instance.uuid] = News(ctxt, instance)
            return known, True
        known.ctxt, known.instance = ctxt, instance
        return known, False
