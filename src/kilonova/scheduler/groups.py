"""Server groups: policy, members and where they are, read when a request needs them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from kilonova.contract import exceptions, objects
from kilonova.db import group_hosts
from kilonova.db.cells import Cells
from kilonova.scheduler.candidates import field
from kilonova.scheduler.snapshot.host import Host

AFFINITY = group_hosts.AFFINITY
ANTI_AFFINITY = group_hosts.ANTI_AFFINITY
SOFT_AFFINITY = "soft-affinity"
SOFT_ANTI_AFFINITY = "soft-anti-affinity"

NEEDS = {
    AFFINITY: "ServerGroupAffinityFilter",
    ANTI_AFFINITY: "ServerGroupAntiAffinityFilter",
    SOFT_AFFINITY: "ServerGroupSoftAffinityWeigher",
    SOFT_ANTI_AFFINITY: "ServerGroupSoftAntiAffinityWeigher",
}
"""The filter or weigher without which a policy would silently not hold."""


class OvertakenError(Exception):
    """Another member was given a host at the same time, and was first."""


@dataclasses.dataclass
class Group:
    """`hosts`: {member: host} for members that are somewhere, in the databases or on their way.

    `seen` is the group as it was when it was looked at.
    """

    uuid: str
    policy: str | None
    rules: Mapping[str, str]
    members: frozenset[str]
    hosts: dict[str, str]
    seen: group_hosts.Members | None = None

    @property
    def max_per_host(self) -> int:
        return int(self.rules.get("max_server_per_host", 1))

    def on(self, host: Host) -> set[str]:
        """Members on a host, by its own account or by the databases'."""
        told = {uuid for uuid, where in self.hosts.items() if where == host.host}
        return told | (self.members & host.instances)


def of_request(cells: Cells, spec: objects.RequestSpec, instance_uuid: str) -> Group | None:
    """The group of a server, None for a server without one. Raises NoValidHost when a cell that has members does not
    answer.
    """
    if name_of(spec) is None:
        return None
    try:
        seen = group_hosts.members_of(cells, instance_uuid)
    except group_hosts.CellUnknownError:
        raise exceptions.NoValidHost(reason="A cell with members of the server group does not answer.") from None
    if seen is None:
        return None
    return Group(seen.uuid, seen.policy, seen.rules, seen.uuids, dict(seen.hosts), seen)


def name_of(spec: objects.RequestSpec) -> str | None:
    """What the request calls its group, None if it has none."""
    group, hints = field(spec, "instance_group"), field(spec, "scheduler_hints") or {}
    if group is not None:
        return str(group.get("uuid"))
    return str(hints["group"]) if "group" in hints else None


def settle(cells: Cells, group: Group | None, chosen: Mapping[str, str]) -> None:
    """Say where the members go: {member: host}. Raises OvertakenError."""
    if group is not None and group.seen is not None and group_hosts.take(cells, group.seen, chosen):
        raise OvertakenError


def check_supported(group: Group | None, active: frozenset[str]) -> None:
    """Raises UnsupportedPolicyException when nothing that is configured would keep to the policy."""
    needed = NEEDS.get(group.policy or "") if group is not None else None
    if needed is not None and needed not in active:
        raise exceptions.UnsupportedPolicyException(reason=f"{needed} not configured")


def consume(group: Group | None, instance_uuid: str, host: str) -> None:
    """A server of this request goes to a host: the next one sees it there."""
    if group is not None:
        group.hosts[instance_uuid] = host


def release(group: Group | None, instance_uuid: str) -> None:
    if group is not None:
        group.hosts.pop(instance_uuid, None)
