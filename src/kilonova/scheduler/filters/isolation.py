"""Hosts kept for certain images."""

from __future__ import annotations

from kilonova.scheduler.filters.base import Filter
from kilonova.scheduler.request import Request
from kilonova.scheduler.snapshot.host import Host


class IsolatedHostsFilter(Filter):
    """Isolated images go to isolated hosts; those take other images only if not restricted."""

    once = True
    on_rebuild = True

    def objection(self, host: Host, request: Request) -> str | None:
        options = self.conf.filter_scheduler
        isolated_host = host.host in options.isolated_hosts
        isolated_image = request.image_id in options.isolated_images
        if isolated_image and not isolated_host:
            return "the image is for isolated hosts"
        if isolated_host and not isolated_image and options.restrict_isolated_hosts_to_isolated_images:
            return "it is for isolated images"
        return None
