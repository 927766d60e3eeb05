"""Server groups: policy, members and where they are, read when a request needs them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from kilonova.contract import exceptions, objects
from kilonova.db.api import group_placement
from kilonova.db.cell import host_changes
from kilonova.db.cells import Cell, CellDown, Cells
from kilonova.scheduler.candidates import field
from kilonova.scheduler.snapshot.host import Host

AFFINITY = "affinity"
ANTI_AFFINITY = "anti-affinity"
SOFT_AFFINITY = "soft-affinity"
SOFT_ANTI_AFFINITY = "soft-anti-affinity"

NEEDS = {
    AFFINITY: "ServerGroupAffinityFilter",
    ANTI_AFFINITY: "ServerGroupAntiAffinityFilter",
    SOFT_AFFINITY: "ServerGroupSoftAffinityWeigher",
    SOFT_ANTI_AFFINITY: "ServerGroupSoftAntiAffinityWeigher",
}
"""The filter or weigher without which a policy would silently not hold."""


@dataclasses.dataclass
class Group:
    """`hosts`: {member: host} for members that are somewhere, in the databases or on their way."""

    uuid: str
    policy: str | None
    rules: Mapping[str, str]
    members: frozenset[str]
    hosts: dict[str, str]

    @property
    def max_per_host(self) -> int:
        return int(self.rules.get("max_server_per_host", 1))

    def on(self, host: Host) -> set[str]:
        """Members on a host, by its own account or by the databases'."""
        told = {uuid for uuid, where in self.hosts.items() if where == host.host}
        return told | (self.members & host.instances)


def of_request(cells: Cells, spec: objects.RequestSpec, instance_uuid: str) -> Group | None:
    """The group of a server, None for a server without one. One statement in the API database and one in each
    cell that has members.
    """
    hints: Any = field(spec, "scheduler_hints")
    if field(spec, "instance_group") is None and "group" not in (hints or {}):
        return None
    found = cells.api.query(group_placement.group_placement_get, instance_uuid)
    if found is None:
        return None
    hosts = _hosts(cells, found["members"])
    return Group(found["uuid"], found["policy"], found["rules"], frozenset(found["members"]), hosts)


def _hosts(cells: Cells, members: Mapping[str, str | None]) -> dict[str, str]:
    """`members`: {instance uuid: cell uuid}. Raises NoValidHost when a cell that has members does not answer."""
    by_cell: dict[str, list[str]] = {}
    for uuid, cell in members.items():
        if cell is not None:
            by_cell.setdefault(cell, []).append(uuid)

    def read(cell: Cell) -> dict[str, str]:
        return cell.database.query(host_changes.instance_hosts, by_cell[cell.uuid])

    asked = [cell for cell in cells.all(include_cell0=False) if cell.uuid in by_cell]
    hosts: dict[str, str] = {}
    for answer in cells.scatter(read, asked, timeout=10.0).values():
        if isinstance(answer, CellDown):
            raise exceptions.NoValidHost(reason="A cell with members of the server group does not answer.")
        hosts |= answer
    return hosts


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
