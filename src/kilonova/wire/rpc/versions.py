"""What `[upgrade_levels] compute = auto` means: the newest version that every compute service understands."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from kilonova.contract.rpc import compute

LOG = logging.getLogger(__name__)


class AutomaticCap:
    """Asks once for the lowest service version, and again while there is no compute service at all."""

    def __init__(self, lowest: Callable[[], int | None]) -> None:
        self._lowest = lowest
        self._lock = threading.Lock()
        self._known: str | None = None

    def __call__(self) -> str | None:
        """The version cap; None (no cap) as long as no compute service is registered."""
        with self._lock:
            if self._known is None and (lowest := self._lowest()):
                self._known = version_of(lowest)
                LOG.info("compute services from version %s on are spoken to in RPC version %s", lowest, self._known)
            return self._known


def version_of(service_version: int) -> str:
    """The newest RPC version that a compute service of that version understands.

    A service newer than we know understands at least what the newest one we know does.
    """
    known = compute.API.by_service_version
    return known[min(service_version, max(known))]
