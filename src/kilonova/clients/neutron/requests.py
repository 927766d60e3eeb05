"""What a user asked for in `networks`, checked against Neutron."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from kilonova.clients.neutron.memory import Memory
from kilonova.clients.neutron.rest import Item, NeutronRest, project_of
from kilonova.contract import exceptions, network_info, objects
from kilonova.contract.context import RequestContext

AUTO = "auto"
NONE = "none"

Requested: TypeAlias = "Sequence[objects.NetworkRequest] | objects.NetworkRequestList | None"


def as_list(requested: Requested) -> list[objects.NetworkRequest]:
    if requested is None:
        return []
    return list(getattr(requested, "objects", requested))


def field(request: objects.NetworkRequest, name: str) -> Any:
    """A field of a network request, None where it was never set."""
    return getattr(request, name) if request.obj_attr_is_set(name) else None


def single(requested: Requested) -> str | None:
    """The network id of a request for exactly one thing without a port; `auto` and `none` are such ids."""
    found = as_list(requested)
    return field(found[0], "network_id") if len(found) == 1 else None


def wants_none(requested: Requested) -> bool:
    return single(requested) == NONE


def wants_auto(requested: Requested) -> bool:
    return single(requested) == AUTO


def networks_of(rest: NeutronRest, ctxt: RequestContext, project: str, *, ready_only: bool = False) -> list[Item]:
    """All networks that a project may use: its own, then shared ones."""
    own: dict[str, Any] = {"tenant_id": project, "shared": False}
    if ready_only:
        own["admin_state_up"] = True
    return rest.list(ctxt, "networks", **own) + rest.list(ctxt, "networks", shared=True)


def networks_named(
    rest: NeutronRest, memory: Memory, ctxt: RequestContext, project: str, wanted: Sequence[str]
) -> list[Item]:
    """Of the wanted networks those that a project may use, in that order.

    Its own and those shared with everybody are known by themselves; about others Neutron decides by the user's token.
    """
    known = memory.networks(ctxt, wanted)
    found = {each: net for each, net in known.items() if _everyday(net, project)}
    doubtful = sorted(set(known) - set(found))
    if doubtful:
        found |= {net["id"]: net for net in rest.list(ctxt, "networks", id=doubtful)}
    return [found[each] for each in dict.fromkeys(wanted) if each in found]


def _everyday(network: Item, project: str) -> bool:
    if network.get("router:external"):
        return False
    return bool(network.get("shared")) or project in (network.get("tenant_id"), network.get("project_id"))


def validate_networks(rest: NeutronRest, memory: Memory, ctxt: RequestContext, requested: Requested, count: int) -> int:
    """How many of `count` servers the project's port quota allows; changes nothing.

    Sets `network_id` of requests that name a port. Raises PortNotFound, PortInUse,
    PortRequiresFixedIP, FixedIpAlreadyInUse, NetworkNotFound, NetworkRequiresSubnet,
    NetworkAmbiguous, UnableToAutoAllocateNetwork, PortLimitExceeded.
    """
    if wants_none(requested):
        return count
    needed = _ports_needed(rest, memory, ctxt, requested)
    if not needed:
        return count
    limit = memory.port_quota(ctxt, project_of(ctxt))
    if limit == -1:
        return count
    used = len(rest.list(ctxt, "ports", tenant_id=project_of(ctxt), fields="id"))
    if used > limit:
        raise exceptions.PortLimitExceeded(f"The project has {used} ports, its limit is {limit}")
    return min(count, (limit - used) // needed)


def _ports_needed(rest: NeutronRest, memory: Memory, ctxt: RequestContext, requested: Requested) -> int:
    """New ports per server."""
    wanted = as_list(requested)
    if not wanted or wants_auto(requested):
        _check_default(rest, ctxt, auto=bool(wanted))
        return 1
    ports = _ports_by_id(rest, ctxt, [field(each, "port_id") for each in wanted])
    networks: list[str] = []
    for request in wanted:
        port_id = field(request, "port_id")
        if port_id:
            _check_port(ports, port_id)
            request.network_id = ports[port_id]["network_id"]
        else:
            networks.append(field(request, "network_id"))
            _check_address(rest, ctxt, request)
    if networks:
        _check_networks(rest, memory, ctxt, networks)
    return len(networks)


def _check_default(rest: NeutronRest, ctxt: RequestContext, *, auto: bool) -> None:
    networks = networks_of(rest, ctxt, project_of(ctxt))
    if len(networks) > 1:
        raise exceptions.NetworkAmbiguous("Multiple possible networks found, use a Network ID to be more specific.")
    if not networks and auto and rest.auto_topology(ctxt, project_of(ctxt), dry_run=True) is None:
        raise exceptions.UnableToAutoAllocateNetwork(project_id=project_of(ctxt))


def _ports_by_id(
    rest: NeutronRest, ctxt: RequestContext, ids: Iterable[str | None], *, admin: bool = False
) -> dict[str, Item]:
    wanted = [each for each in ids if each]
    if not wanted:
        return {}
    return {port["id"]: port for port in rest.list(ctxt, "ports", admin=admin, id=wanted)}


def _check_port(ports: Mapping[str, Item], port_id: str) -> None:
    if port_id not in ports:
        raise exceptions.PortNotFound(port_id=port_id)
    port = ports[port_id]
    if port.get("device_id"):
        raise exceptions.PortInUse(port_id=port_id)
    if not port.get("fixed_ips") and port.get("ip_allocation") not in ("deferred", "none"):
        raise exceptions.PortRequiresFixedIP(port_id=port_id)


def _check_address(rest: NeutronRest, ctxt: RequestContext, request: objects.NetworkRequest) -> None:
    address = field(request, "address")
    if not address:
        return
    taken = rest.list(
        ctxt, "ports", network_id=request.network_id, fixed_ips=f"ip_address={address}", fields="device_id"
    )
    if taken:
        raise exceptions.FixedIpAlreadyInUse(address=str(address), instance_uuid=taken[0]["device_id"])


def _check_networks(rest: NeutronRest, memory: Memory, ctxt: RequestContext, wanted: list[str]) -> None:
    found = networks_named(rest, memory, ctxt, project_of(ctxt), wanted)
    lost = set(wanted) - {net["id"] for net in found}
    if lost:
        raise exceptions.NetworkNotFound(network_id=", ".join(sorted(map(str, lost))))
    for net in found:
        if not net.get("subnets"):
            raise exceptions.NetworkRequiresSubnet(network_uuid=net["id"])


def requested_ports(
    rest: NeutronRest, ctxt: RequestContext, instance: objects.Instance, wanted: Sequence[objects.NetworkRequest]
) -> dict[str, Item]:
    """The existing ports asked for, each checked to be the project's and free (or already this server's).

    Raises PortNotFound, PortNotUsable, PortInUse, PortNotUsableDNS, PortBindingFailed.
    """
    ids = [field(each, "port_id") for each in wanted]
    ports = _ports_by_id(rest, ctxt, ids, admin=True)
    for port_id in filter(None, ids):
        if port_id not in ports:
            raise exceptions.PortNotFound(port_id=port_id)
        _check_usable(ports[port_id], instance)
    return ports


def _check_usable(port: Item, instance: objects.Instance) -> None:
    if (port.get("tenant_id") or port.get("project_id")) != instance.project_id:
        raise exceptions.PortNotUsable(port_id=port["id"], instance=instance.uuid)
    if port.get("device_id") and port["device_id"] != instance.uuid:
        raise exceptions.PortInUse(port_id=port["id"])
    name = port.get("dns_name")
    if name and name != instance.hostname:
        raise exceptions.PortNotUsableDNS(
            port_id=port["id"], instance=instance.uuid, value=name, hostname=instance.hostname
        )
    if not port.get("device_id"):
        check_bound(port)


def check_bound(port: Mapping[str, Any]) -> None:
    """Raises PortBindingFailed when no mechanism driver could bind the port."""
    if port.get("binding:vif_type") == network_info.VIF_TYPE_BINDING_FAILED:
        raise exceptions.PortBindingFailed(port_id=port["id"])


def networks_for_build(
    rest: NeutronRest,
    memory: Memory,
    ctxt: RequestContext,
    instance: objects.Instance,
    requested: Requested,
    ordered: list[objects.NetworkRequest],
    *,
    may_attach_external: bool,
) -> dict[str, Item]:
    """The networks to use, by id; adds the only possible one to `ordered` when none was named.

    Raises NetworkNotFound, NetworkAmbiguous, InterfaceAttachFailedNoNetwork,
    ExternalNetworkAttachForbidden, UnableToAutoAllocateNetwork.
    """
    auto = wants_auto(requested)
    named = [] if auto else [each for each in (field(one, "network_id") for one in ordered) if each]
    if named:
        networks = networks_named(rest, memory, ctxt, instance.project_id, named)
    else:
        networks = networks_of(rest, ctxt, instance.project_id, ready_only=auto)
    if not networks and not as_list(requested):
        return {}
    if not networks and auto:
        networks = [_made_for(rest, ctxt, instance.project_id)]
    missing = set(named) - {net["id"] for net in networks}
    if missing:
        raise exceptions.NetworkNotFound(network_id=", ".join(sorted(missing)))
    if not named:
        _take_the_only(networks, instance, ordered)
    if not may_attach_external:
        _check_external(networks)
    return {net["id"]: net for net in networks}


def _take_the_only(networks: list[Item], instance: objects.Instance, ordered: list[objects.NetworkRequest]) -> None:
    if not networks:
        raise exceptions.InterfaceAttachFailedNoNetwork(project_id=instance.project_id)
    if len(networks) > 1:
        raise exceptions.NetworkAmbiguous("Multiple possible networks found, use a Network ID to be more specific.")
    tag = next((field(each, "tag") for each in ordered), None)
    ordered[:] = [objects.NetworkRequest(network_id=networks[0]["id"], tag=tag)]


def _check_external(networks: Iterable[Item]) -> None:
    for net in networks:
        if net.get("router:external") and not net.get("shared"):
            raise exceptions.ExternalNetworkAttachForbidden(network_uuid=net["id"])


def _made_for(rest: NeutronRest, ctxt: RequestContext, project: str) -> Item:
    made = rest.auto_topology(ctxt, project)
    network = rest.show(ctxt, "networks", made) if made else None
    if network is None:
        raise exceptions.UnableToAutoAllocateNetwork(project_id=project)
    return network
