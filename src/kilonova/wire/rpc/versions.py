"""What `[upgrade_levels] compute = auto` means: the newest version that every compute service understands."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

import msgspec

from kilonova.contract.rpc import compute

LOG = logging.getLogger(__name__)


class Lowest(msgspec.Struct, frozen=True):
    """The lowest version of all compute services; None while there is none. `sure`: all cells answered."""

    version: int | None
    sure: bool = True


class AutomaticCap:
    """Asks once for the lowest service version, and again while no service is there or not every cell answers."""

    def __init__(self, lowest: Callable[[], Lowest]) -> None:
        self._lowest = lowest
        self._lock = threading.Lock()
        self._known: str | None = None

    def __call__(self) -> str | None:
        """The version cap; None (no cap) as long as no compute service is registered."""
        with self._lock:
            if self._known is not None:
                return self._known
            lowest = self._lowest()
            if not lowest.version:
                return None
            cap = version_of(lowest.version)
            if lowest.sure:
                self._known = cap
                LOG.info("compute services from version %s on are spoken to in RPC version %s", lowest.version, cap)
            return cap

    def forget(self) -> None:
        """Ask again: services may have been upgraded."""
        with self._lock:
            self._known = None


def version_of(service_version: int) -> str:
    """The newest RPC version that a compute service of that version understands.

    A service newer than we know understands at least what the newest one we know does.
    """
    known = compute.API.by_service_version
    return known[min(service_version, max(known))]
