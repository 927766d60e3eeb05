"""Ports that ask for bandwidth: what they ought to hold in Placement, and saying so in their bindings."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from kilonova.clients.bundle import Clients
from kilonova.clients.http import ServiceError
from kilonova.clients.neutron.allocation import GROUPED_REQUESTS, held, holders
from kilonova.clients.neutron.resource_requests import of_port
from kilonova.clients.neutron.rest import Item
from kilonova.cmd.manage.actions import Refused
from kilonova.contract import context, exceptions, objects
from kilonova.scheduler.candidates import Query
from kilonova.scheduler.claim import merged
from kilonova.scheduler.wishes import Wishes

Resources = Mapping[str, Mapping[str, int]]
"""{provider uuid: {class: amount}}"""

CANNOT_READ, CANNOT_WRITE, CANNOT_TAKE_BACK = 5, 6, 7
NEUTRON_FAILURES = (ServiceError, exceptions.Unauthorized, exceptions.Forbidden)
FIELDS = ["id", "device_id", "resource_request", "binding:profile"]


class Unhealable(Exception):
    """This server cannot be healed, others may; `code` is the exit code."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


@dataclasses.dataclass(frozen=True)
class PortPlan:
    """What a server's ports lack in Placement; and ports with the profile by which they shall name their provider."""

    resources: Resources = dataclasses.field(default_factory=dict)
    profiles: Sequence[tuple[Item, dict[str, Any]]] = ()


class Ports:
    """Reads, plans and writes; `tell` gets a line for each change."""

    def __init__(self, clients: Clients, tell: Callable[[str], object]) -> None:
        self._clients = clients
        self._rest = clients.neutron.rest
        self._ctxt = context.admin()
        self._tell = tell

    def of_servers(self, uuids: Sequence[str]) -> dict[str, list[Item]]:
        """The ports with a resource request, by server; one call. Raises Refused."""
        try:
            ports = self._rest.list(self._ctxt, "ports", admin=True, device_id=list(uuids), fields=FIELDS)
        except NEUTRON_FAILURES as exc:
            raise Refused(CANNOT_READ, f"Neutron does not show the ports: {exc}") from exc
        found: dict[str, list[Item]] = {uuid: [] for uuid in uuids}
        for port in ports:
            if port.get("resource_request"):
                found[port["device_id"]].append(port)
        return found

    def plan(self, ports: Iterable[Item], flavor: objects.Flavor, node: str, present: Resources) -> PortPlan:
        """What is missing in `present`, the server's other allocations. Raises Unhealable, Refused.

        A port whose binding names a provider gets its share there; for the others Placement must know exactly one way
        below the node.
        """
        resources: Resources = {}
        unplaced = []
        for port in ports:
            named = held(port)
            if not named:
                unplaced.append(port)
            elif not set(named) <= set(present):
                lost = {provider: each["resources"] for provider, each in named.items() if provider not in present}
                resources = merged(resources, lost)
        if not unplaced:
            return PortPlan(resources)
        found, profiles = self._place(unplaced, flavor, node)
        return PortPlan(merged(resources, found), profiles)

    def _place(self, ports: Sequence[Item], flavor: objects.Flavor, node: str) -> tuple[Resources, Any]:
        grouped = self._grouped()
        ids = ", ".join(port["id"] for port in ports)
        query = _query(ports, flavor, node, grouped=grouped)
        try:
            ways, _ = self._clients.placement.allocation_candidates(self._ctxt, query.params())
        except ServiceError as exc:
            if exc.status is None or exc.status >= 500:
                raise
            raise Unhealable(3, f"Placement refuses what the ports {ids} ask for: {exc.detail}") from exc
        if not ways:
            raise Unhealable(3, f"Its node has no room for what the ports {ids} ask for.")
        if len(ways) > 1:
            raise Unhealable(
                3, f"Several providers could serve the ports {ids}, and nothing tells which does. Migrate the server."
            )
        resources = {provider: dict(each["resources"]) for provider, each in ways[0]["allocations"].items()}
        mapping = ways[0]["mappings"]
        return resources, [(port, _profile(port, holders(port, mapping, grouped=grouped))) for port in ports]

    def _grouped(self) -> bool:
        try:
            return GROUPED_REQUESTS in self._rest.extensions(self._ctxt)
        except NEUTRON_FAILURES as exc:
            raise Refused(CANNOT_READ, f"Neutron does not show its extensions: {exc}") from exc

    def write(self, plan: PortPlan) -> None:
        """Name the providers in the ports' bindings: all, or after a failure none. Raises Refused."""
        done: list[Item] = []
        for port, profile in plan.profiles:
            try:
                self._set(port, profile)
            except NEUTRON_FAILURES as exc:
                self._take_back(done)
                raise Refused(CANNOT_WRITE, f"Neutron does not change port {port['id']}: {exc}") from exc
            self._tell(f"Port {port['id']} names its provider: {profile['allocation']}.")
            done.append(port)

    def take_back(self, plan: PortPlan) -> None:
        """Bindings as they were. Raises Refused when some cannot be."""
        self._take_back([port for port, _ in plan.profiles])

    def _take_back(self, ports: Iterable[Item]) -> None:
        failed, why = [], ""
        for port in ports:
            try:
                self._set(port, dict(port.get("binding:profile") or {}))
            except NEUTRON_FAILURES as exc:
                failed.append(port["id"])
                why = str(exc)
        if failed:
            raise Refused(
                CANNOT_TAKE_BACK,
                f"The binding profiles of these ports name an `allocation` that does not exist; remove it by hand: "
                f"{', '.join(failed)} ({why})",
            )

    def _set(self, port: Item, profile: dict[str, Any]) -> None:
        self._rest.update(self._ctxt, "ports", port["id"], {"binding:profile": profile}, admin=True)


def _query(ports: Iterable[Item], flavor: objects.Flavor, node: str, *, grouped: bool) -> Query:
    # Two ways are as many as a thousand: nobody could choose.
    query = Query(limit=2)
    for port in ports:
        groups, same_subtree = of_port(port, grouped=grouped)
        for group in groups:
            group.in_tree = node
            query.add_group(group)
        if same_subtree:
            query.same_subtree.append(same_subtree)
    query.policy = Wishes(flavor, None).specs.get("group_policy", "none")
    return query


def _profile(port: Item, allocation: Any) -> dict[str, Any]:
    return {**(port.get("binding:profile") or {}), "allocation": allocation}
