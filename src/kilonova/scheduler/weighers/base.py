"""What a weigher is, and how raw weights become comparable."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import ClassVar

from oslo_config import cfg

from kilonova.scheduler import settings
from kilonova.scheduler.request import Request
from kilonova.scheduler.snapshot.host import Host


class Weigher(abc.ABC):
    """More weight wins. `option` in `group` is the multiplier, `key` in an aggregate's metadata overrides it."""

    group: ClassVar[str] = "filter_scheduler"
    option: ClassVar[str]
    key: ClassVar[str]
    sign: ClassVar[float] = 1.0
    minimum: ClassVar[float | None] = None
    """Bound of the raw weights, and the weight that normalizes to 0; None takes the least of the hosts'."""

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self.conf = conf

    @property
    def name(self) -> str:
        return type(self).__name__

    def applies(self, request: Request) -> bool:
        """False when all hosts weigh the same: the request says nothing that this weigher looks at."""
        return True

    def multiplier(self, host: Host) -> float:
        return self.sign * settings.of_aggregates(host, self.key, float, self.conf[self.group][self.option])

    def multipliers(self, hosts: Sequence[Host]) -> list[float]:
        """Of all hosts; the option is read once."""
        common = self.sign * self.conf[self.group][self.option]
        return [self.multiplier(host) if host.aggregates else common for host in hosts]

    @abc.abstractmethod
    def weigh(self, host: Host, request: Request) -> float:
        """The raw weight."""

    def weights(self, hosts: Sequence[Host], request: Request) -> list[float]:
        """Raw weights of all hosts, not below `minimum`."""
        raw = [float(self.weigh(host, request)) for host in hosts]
        return raw if self.minimum is None else [max(weight, self.minimum) for weight in raw]


def normalize(weights: Sequence[float], minimum: float | None = None) -> list[float]:
    """Weights between 0 (`minimum`, else the least) and 1 (the greatest); all 0 when they are equal."""
    if not weights:
        return []
    low = min(weights) if minimum is None else minimum
    high = max(weights)
    if low == high:
        return [0.0] * len(weights)
    return [(weight - low) / (high - low) for weight in weights]
