"""Together with or apart from other servers: groups and the hints that name servers."""

from __future__ import annotations

import ipaddress

from kilonova.scheduler import groups
from kilonova.scheduler.filters.base import Filter
from kilonova.scheduler.request import Request
from kilonova.scheduler.snapshot.host import Host


class ServerGroupAntiAffinityFilter(Filter):
    """At most max_server_per_host (1) members of the group on a host."""

    def applies(self, request: Request) -> bool:
        return request.group is not None and request.group.policy == groups.ANTI_AFFINITY

    def objection(self, host: Host, request: Request) -> str | None:
        group = request.group
        if group is None or group.policy != groups.ANTI_AFFINITY or request.instance_uuid in host.instances:
            return None
        here = group.on(host)
        if len(here) < group.max_per_host:
            return None
        return f"it has {len(here)} of at most {group.max_per_host} servers of the group"


class ServerGroupAffinityFilter(Filter):
    """Where the other members are."""

    def applies(self, request: Request) -> bool:
        return request.group is not None and request.group.policy == groups.AFFINITY

    def objection(self, host: Host, request: Request) -> str | None:
        group = request.group
        if group is None or group.policy != groups.AFFINITY:
            return None
        others = {where for uuid, where in group.hosts.items() if uuid != request.instance_uuid}
        return None if not others or host.host in others else "the group's servers are elsewhere"


class DifferentHostFilter(Filter):
    once = True

    def objection(self, host: Host, request: Request) -> str | None:
        named = request.named_servers("different_host")
        return "a server of the hint different_host is here" if host.instances.intersection(named) else None


class SameHostFilter(Filter):
    once = True

    def objection(self, host: Host, request: Request) -> str | None:
        named = request.named_servers("same_host")
        if not request.hint_list("same_host") or host.instances.intersection(named):
            return None
        return "no server of the hint same_host is here"


class SimpleCIDRAffinityFilter(Filter):
    """In the network of the address in the hint build_near_host_ip (with the hint cidr, /24)."""

    once = True

    def objection(self, host: Host, request: Request) -> str | None:
        near = request.hint("build_near_host_ip")
        if not near:
            return None
        try:
            network = ipaddress.ip_network(f"{near}{request.hint('cidr', '/24')}", strict=False)
        except ValueError as problem:
            return f"the hints build_near_host_ip and cidr make no network: {problem}"
        if host.host_ip is not None and ipaddress.ip_address(str(host.host_ip)) in network:
            return None
        return f"its address {host.host_ip} is not in {network}"
