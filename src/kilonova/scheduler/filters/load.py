"""How much is going on or running on a host, and what its monitors measure."""

from __future__ import annotations

import logging

from kilonova.scheduler import settings
from kilonova.scheduler.filters.base import Filter
from kilonova.scheduler.request import Request
from kilonova.scheduler.snapshot.host import Host

LOG = logging.getLogger(__name__)


class IoOpsFilter(Filter):
    """Fewer than max_io_ops_per_host builds, resizes, snapshots, migrations."""

    def limit(self, host: Host) -> int:
        return int(self.conf.filter_scheduler.max_io_ops_per_host)

    def objection(self, host: Host, request: Request) -> str | None:
        limit = self.limit(host)
        return None if host.num_io_ops < limit else f"{host.num_io_ops} operations go on, at most {limit} may"


class AggregateIoOpsFilter(IoOpsFilter):
    """The smallest max_io_ops_per_host of the host's aggregates, else the configured one."""

    keys = ("max_io_ops_per_host",)

    def limit(self, host: Host) -> int:
        return int(settings.of_aggregates(host, self.keys[0], int, super().limit(host)))


class NumInstancesFilter(Filter):
    """Fewer than max_instances_per_host servers."""

    def limit(self, host: Host) -> int:
        return int(self.conf.filter_scheduler.max_instances_per_host)

    def objection(self, host: Host, request: Request) -> str | None:
        limit = self.limit(host)
        return None if host.num_instances < limit else f"it has {host.num_instances} of at most {limit} servers"


class AggregateNumInstancesFilter(NumInstancesFilter):
    """The smallest max_instances_per_host of the host's aggregates, else the configured one."""

    keys = ("max_instances_per_host",)

    def limit(self, host: Host) -> int:
        return int(settings.of_aggregates(host, self.keys[0], int, super().limit(host)))


class MetricsFilter(Filter):
    """The host has all metrics that are weighed."""

    def objection(self, host: Host, request: Request) -> str | None:
        missing = {name for name, _ in settings.pairs(self.conf.metrics.weight_setting)} - set(host.metrics)
        return f"it does not measure {', '.join(sorted(missing))}" if missing else None
