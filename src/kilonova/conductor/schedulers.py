"""Whether a scheduler answers on this conductor's own bus: who may choose hosts follows from that, not from a file."""

from __future__ import annotations

import logging
from typing import Any

from kilonova.base import clock
from kilonova.contract import context, exceptions
from kilonova.wire.rpc.clients import BaseClient
from kilonova.wire.rpc.errors import RpcError

LOG = logging.getLogger(__name__)

TOPIC = "scheduler"

LOOK_EVERY = 5.0
"""Seconds between two looks while none answers."""

REMEMBER = 20.0
"""Seconds for which an answer makes another look needless."""

BELIEVE = 60.0
"""Seconds for which one that answered is taken to be there: it may be too busy to answer."""

PING_TIMEOUT = 3.0


class Schedulers:
    """Of our kind or of Nova's: both answer a ping. Where cells have buses of their own, none is on those."""

    def __init__(self, bus: Any) -> None:
        self._client = BaseClient(bus, TOPIC)
        self._answered_at: float | None = None
        self._told: bool | None = None

    def there(self) -> bool:
        """Whether one answered lately."""
        return self._age() < BELIEVE

    def look(self) -> None:
        """Ask, unless one answered just now. Takes up to some seconds when nobody is there."""
        if self._age() < REMEMBER:
            return
        try:
            self._client.ping(context.admin(), 0, timeout=PING_TIMEOUT)
        except (RpcError, exceptions.NovaException) as exc:
            LOG.debug("no scheduler answers: %s", exc)
        else:
            self._answered_at = clock.monotonic()
        if self._told is not self.there():
            self._told = self.there()
            LOG.info("%s answers on this bus", "a scheduler" if self._told else "no scheduler")

    def _age(self) -> float:
        return float("inf") if self._answered_at is None else clock.monotonic() - self._answered_at
