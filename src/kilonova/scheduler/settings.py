"""Settings with a name: `a=1.0` pairs in options, and numbers in the metadata of aggregates."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from kilonova.scheduler.snapshot.host import Host

LOG = logging.getLogger(__name__)


def of_aggregates(host: Host, key: str, kind: Callable[[str], float], otherwise: float) -> float:
    """The smallest value that the host's aggregates give for a key; what is no number is logged and counts not."""
    values = host.metadata_values(key)
    try:
        return min((kind(value) for value in values), default=otherwise)
    except ValueError:
        LOG.warning("aggregates of host %s have %s %s, which is no number", host.host, key, sorted(values))
        return otherwise


def pairs(options: Iterable[str]) -> list[tuple[str, float]]:
    """(name, number) of `name=number` texts; malformed ones are logged and left out."""
    found = []
    for text in options:
        name, _, value = text.partition("=")
        try:
            found.append((name.strip(), float(value)))
        except ValueError:
            LOG.warning("ignoring the setting %r", text)
    return found
