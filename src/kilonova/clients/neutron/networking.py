"""Neutron as the other rooms see it: validate, allocate, describe, deallocate."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec

from kilonova.clients.http import passes
from kilonova.clients.neutron import allocation, info, requests, resource_requests, security_groups
from kilonova.clients.neutron.memory import Memory
from kilonova.clients.neutron.rest import Item, NeutronRest, project_of
from kilonova.clients.patience import outlast
from kilonova.contract import network_info, objects
from kilonova.contract.context import RequestContext


class Neutron:
    """The network service. `rest` holds the plain calls for what needs no more than that."""

    def __init__(
        self, rest: NeutronRest, ovs_bridge: str = "br-int", *, remember: float = 0.0, bound_at_once: bool = True
    ) -> None:
        """`remember`: seconds for which builds share what they ask alike; `bound_at_once`: see `allocation.Wish`."""
        self.rest = rest
        self._memory = Memory(rest, remember)
        self._ovs_bridge = ovs_bridge
        self._bound_at_once = bound_at_once

    # --- before a server exists ------------------------------------------------------------

    def validate_networks(self, ctxt: RequestContext, requested: requests.Requested, count: int) -> int:
        """How many of `count` servers the port quota allows; see `requests.validate_networks` for what is raised."""
        return requests.validate_networks(self.rest, self._memory, ctxt, requested, count)

    def resource_requests(
        self, ctxt: RequestContext, requested: requests.Requested
    ) -> resource_requests.ResourceRequests | None:
        """What the requested networks and ports need of a host; None without networks."""
        return resource_requests.collect(self.rest, self._memory, ctxt, requested)

    def security_group_ids(self, ctxt: RequestContext, wanted: Sequence[str] | None) -> list[str]:
        """Ids for names or ids in the context's project. Raises SecurityGroupNotFound, NoUniqueMatch."""
        return security_groups.ids_for(self.rest, ctxt, project_of(ctxt), wanted)

    # --- a server's ports ------------------------------------------------------------------

    def allocate(
        self,
        ctxt: RequestContext,
        instance: objects.Instance,
        requested: requests.Requested,
        security_groups: Sequence[str] | None,
        host: str | None,
        *,
        mapping: Mapping[str, Sequence[str]] | None = None,
        pci_profiles: Mapping[str, Mapping[str, Any]] | None = None,
        attached: Collection[str] = (),
        may_attach_external: bool | None = None,
        first: bool = False,
    ) -> network_info.NetworkInfo:
        """Give a server the networks asked for, bound to `host`; its VIFs in the requested order.

        Existing ports are bound, others created (or found from an earlier try of the same
        server); all of it is undone when a part fails. For a server that already has interfaces
        pass their ids as `attached`. `security_groups`: names or ids for new ports.
        With `first` nobody has tried before, so that nothing is looked for.
        Networks `auto` and `none` are understood. Attaching to an external network is the
        admin's, unless `may_attach_external` says otherwise.

        Raises what `requests` raises, and PortLimitExceeded, NoMoreFixedIps, InvalidInput,
        FixedIpAlreadyInUse, SecurityGroupNotFound, NoUniqueMatch, SecurityGroupCannotBeApplied,
        PortBindingFailed, FixedIpInvalidOnHost, NetworksWithQoSPolicyNotSupported.
        """
        if requests.wants_none(requested):
            return []
        wish = allocation.Wish(
            host,
            in_one=self._bound_at_once,
            mapping=mapping or {},
            pci_profiles=pci_profiles or {},
            attached=frozenset(attached),
        )
        external = ctxt.is_admin if may_attach_external is None else may_attach_external
        tries = itertools.count()

        def attempt() -> network_info.NetworkInfo:
            fresh = first and next(tries) == 0
            return self._allocate(ctxt, instance, requested, security_groups, wish, external=external, first=fresh)

        return outlast(attempt, passes, f"ports of server {instance.uuid}")

    def _allocate(
        self,
        ctxt: RequestContext,
        instance: objects.Instance,
        requested: requests.Requested,
        security_groups: Sequence[str] | None,
        wish: allocation.Wish,
        *,
        external: bool,
        first: bool,
    ) -> network_info.NetworkInfo:
        wanted = [] if requests.wants_auto(requested) else requests.as_list(requested)
        existing = requests.requested_ports(self.rest, ctxt, instance, wanted)
        ordered = [_resolved(each, existing) for each in wanted]
        networks = requests.networks_for_build(
            self.rest, self._memory, ctxt, instance, requested, ordered, may_attach_external=external
        )
        if not networks:
            return []
        wish = msgspec.structs.replace(wish, groups=self._group_ids(ctxt, instance, security_groups))
        leftovers = [] if first else info.ports_of(self.rest, ctxt, instance.uuid, instance.project_id)
        work = allocation.Allocation(self.rest, ctxt, instance, wish)
        done = work.run(ordered, networks, existing, leftovers)
        try:
            return info.build(
                self.rest,
                self._memory,
                ctxt,
                done.ports,
                preserve=done.preexisting,
                ovs_bridge=self._ovs_bridge,
                fresh=work.made,
            )
        except Exception:
            work.undo()
            raise

    def _group_ids(self, ctxt: RequestContext, instance: objects.Instance, wanted: Sequence[str] | None) -> list[str]:
        return security_groups.ids_for(self.rest, ctxt, instance.project_id, wanted)

    def deallocate(
        self,
        ctxt: RequestContext,
        instance: objects.Instance,
        *,
        requested: requests.Requested = None,
        cached: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        """Take all ports from a server: those the user brought (in `requested`, or marked so in `cached`) are
        unbound, the others deleted. Repeating it is harmless. Raises ServiceError after having tried all.
        """
        brought = {requests.field(each, "port_id") for each in requests.as_list(requested)} - {None}
        preserve = {*brought, *network_info.preexisting_port_ids(cached)}
        ports = info.ports_of(self.rest, ctxt, instance.uuid, instance.project_id)
        allocation.deallocate(self.rest, ctxt, ports, preserve)

    def release_port(
        self, ctxt: RequestContext, instance: objects.Instance, port_id: str, cached: Sequence[Mapping[str, Any]] = ()
    ) -> dict[str, dict[str, Any]]:
        """Take one port from a server; returns what it held in Placement: {provider: {"resources": {...}}}."""
        port = self.rest.show(ctxt, "ports", port_id, admin=True)
        preserve = network_info.preexisting_port_ids(cached)
        if port is not None and port.get("device_id") == instance.uuid:
            allocation.deallocate(self.rest, ctxt, [port], preserve)
        return allocation.held(port or {})

    def network_info(
        self,
        ctxt: RequestContext,
        instance: objects.Instance,
        *,
        cached: Sequence[Mapping[str, Any]] = (),
        port_id: str | None = None,
        preserve: Collection[str] = (),
    ) -> network_info.NetworkInfo:
        """The server's network info as Neutron has it now, in the order of `cached`; see `info.refreshed`."""
        return info.refreshed(
            self.rest,
            ctxt,
            instance.uuid,
            instance.project_id,
            cached,
            port_id=port_id,
            preserve=preserve,
            ovs_bridge=self._ovs_bridge,
        )

    def setup_binding(self, ctxt: RequestContext, instance: objects.Instance, host: str | None) -> None:
        """Bind all ports of a server to `host` (None: to no host). Raises PortBindingFailed."""
        for port in info.ports_of(self.rest, ctxt, instance.uuid, instance.project_id):
            if port.get("binding:host_id") == host:
                continue
            bound = self.rest.update(ctxt, "ports", port["id"], {"binding:host_id": host}, admin=True)
            requests.check_bound(bound)

    # --- reading ---------------------------------------------------------------------------

    def ports_by_device(self, ctxt: RequestContext, instance_uuid: str, project: str) -> list[Item]:
        """A server's ports as an admin sees them."""
        return info.ports_of(self.rest, ctxt, instance_uuid, project)

    def security_groups_for(self, ctxt: RequestContext, port_ids: Sequence[str]) -> dict[str, list[Item]]:
        """{port id: [{"id", "name"}]} in two calls."""
        return security_groups.for_ports(self.rest, ctxt, port_ids)


def _resolved(request: objects.NetworkRequest, existing: Mapping[str, Item]) -> objects.NetworkRequest:
    port_id = requests.field(request, "port_id")
    if port_id:
        request.network_id = existing[port_id]["network_id"]
    return request


def tags(vifs: Sequence[Mapping[str, Any]], requested: requests.Requested) -> dict[str, str | None]:
    """{port id: device tag} for interfaces just allocated for `requested`, for the virtual_interfaces records."""
    wanted = requests.as_list(requested)
    named = [requests.field(each, "tag") for each in wanted] if len(wanted) == len(vifs) else [None] * len(vifs)
    return {vif["id"]: tag for vif, tag in zip(vifs, named, strict=True)}
