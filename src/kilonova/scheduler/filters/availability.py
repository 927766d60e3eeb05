"""Is the host's compute service enabled and alive."""

from __future__ import annotations

from oslo_config import cfg

from kilonova.base import clock
from kilonova.scheduler.filters.base import Filter
from kilonova.scheduler.request import Request
from kilonova.scheduler.snapshot.host import Host


class ComputeFilter(Filter):
    once = True

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        super().__init__(conf)
        self._down_time = conf.service_down_time

    def objection(self, host: Host, request: Request) -> str | None:
        service = host.service
        if service.disabled:
            return f"its service is disabled ({service.disabled_reason})" if service.disabled_reason else "disabled"
        if service.forced_down:
            return "its service was declared down"
        if not service.is_up(clock.naive_now(), self._down_time):
            return f"its service was last heard of at {service.last_seen_up}"
        return None


class AllHostsFilter(Filter):
    once = True

    def applies(self, request: Request) -> bool:
        return False

    def objection(self, host: Host, request: Request) -> str | None:
        return None
