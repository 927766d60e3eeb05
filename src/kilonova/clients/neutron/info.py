"""A server's network info, built from Neutron with a constant number of calls.

Five lists, whatever the number of interfaces: ports, networks, subnets, DHCP
ports, floating addresses.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec

from kilonova.clients.neutron.memory import Memory
from kilonova.clients.neutron.rest import Item, NeutronRest
from kilonova.contract import exceptions, network_info
from kilonova.contract.context import RequestContext

TUNNELED = frozenset({"vxlan", "gre", "geneve"})
ROUTER = "router"


class Surroundings(msgspec.Struct, frozen=True):
    """What the ports refer to: networks and subnets by id, DHCP server by subnet, floating by (port, fixed address)."""

    networks: Mapping[str, Item]
    subnets: Mapping[str, Item]
    dhcp: Mapping[str, str]
    floating: Mapping[tuple[str, str], Sequence[str]]


def ports_of(rest: NeutronRest, ctxt: RequestContext, instance_uuid: str, project: str) -> list[Item]:
    """The server's ports. Another project's port that claims the server's id is not among them."""
    return rest.list(ctxt, "ports", admin=True, device_id=instance_uuid, tenant_id=project)


def surroundings(
    rest: NeutronRest, memory: Memory, ctxt: RequestContext, ports: Sequence[Item], fresh: Collection[str] = ()
) -> Surroundings:
    """Four calls at most, fewer where nothing can be found. `fresh`: ports too young to have a floating address."""
    if not ports:
        return Surroundings({}, {}, {}, {})
    network_ids = {port["network_id"] for port in ports}
    subnet_ids = {each["subnet_id"] for port in ports for each in port["fixed_ips"]}
    subnets = memory.subnets(ctxt, subnet_ids)
    served = {subnet["network_id"] for subnet in subnets.values() if subnet.get("enable_dhcp")}
    return Surroundings(
        memory.networks(ctxt, network_ids),
        subnets,
        memory.dhcp_servers(ctxt, served),
        _floating(rest, ctxt, [port["id"] for port in ports if port["id"] not in fresh]) if subnets else {},
    )


def _floating(rest: NeutronRest, ctxt: RequestContext, port_ids: list[str]) -> dict[tuple[str, str], list[str]]:
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    if not port_ids or ROUTER not in rest.extensions(ctxt):
        return found
    for each in rest.list(ctxt, "floatingips", admin=True, port_id=port_ids):
        found[each["port_id"], each["fixed_ip_address"]].append(each["floating_ip_address"])
    return found


def build(
    rest: NeutronRest,
    memory: Memory,
    ctxt: RequestContext,
    ports: Sequence[Item],
    *,
    preserve: Collection[str],
    ovs_bridge: str,
    fresh: Collection[str] = (),
) -> network_info.NetworkInfo:
    """VIFs of `ports`, in their order; `preserve` are ids of ports that outlive the server, `fresh` of new ones."""
    around = surroundings(rest, memory, ctxt, ports, fresh)
    return [vif(port, around, preserve=port["id"] in preserve, ovs_bridge=ovs_bridge) for port in ports]


def vif(port: Item, around: Surroundings, *, preserve: bool, ovs_bridge: str) -> network_info.Vif:
    """One port as a VIF. Raises NovaException for a kind of binding that no longer exists."""
    bridge, ovs_id = _bridge(port, ovs_bridge)
    net = around.networks.get(port["network_id"], {})
    physical, tunneled = provider(net)
    network = network_info.network(
        port["network_id"],
        label=net.get("name"),
        bridge=bridge,
        subnets=[_subnet(around, port, each) for each in _subnet_order(port) if each in around.subnets],
        injected=False,
        tenant_id=net.get("tenant_id") or net.get("project_id") or port.get("tenant_id"),
        mtu=net.get("mtu"),
        physical_network=physical,
        tunneled=tunneled,
    )
    return network_info.vif(
        port["id"],
        port["mac_address"],
        network,
        type=port.get("binding:vif_type"),
        details=port.get("binding:vif_details"),
        profile=port.get("binding:profile"),
        vnic_type=port.get("binding:vnic_type") or network_info.VNIC_NORMAL,
        ovs_interfaceid=ovs_id,
        active=port.get("admin_state_up") is False or port.get("status") == "ACTIVE",
        preserve_on_delete=preserve,
    )


def _subnet_order(port: Item) -> list[str]:
    return list(dict.fromkeys(each["subnet_id"] for each in port["fixed_ips"]))


def _subnet(around: Surroundings, port: Item, subnet_id: str) -> dict[str, Any]:
    subnet = around.subnets[subnet_id]
    meta: dict[str, Any] = {"enable_dhcp": bool(subnet.get("enable_dhcp"))}
    if subnet.get("ipv6_address_mode"):
        meta["ipv6_address_mode"] = subnet["ipv6_address_mode"]
    if subnet_id in around.dhcp:
        meta["dhcp_server"] = around.dhcp[subnet_id]
    mine = [each["ip_address"] for each in port["fixed_ips"] if each["subnet_id"] == subnet_id]
    return network_info.subnet(
        subnet["cidr"],
        gateway=subnet.get("gateway_ip"),
        dns=subnet.get("dns_nameservers") or (),
        routes=[network_info.route(each["destination"], each["nexthop"]) for each in subnet.get("host_routes") or ()],
        ips=[network_info.fixed_ip(each, around.floating.get((port["id"], each), ())) for each in mine],
        **meta,
    )


def provider(network: Mapping[str, Any]) -> tuple[str | None, bool]:
    """(physical network, is tunneled) of a network as an admin sees it; of several segments the first physical one."""
    for segment in network.get("segments") or ():
        if segment.get("provider:physical_network"):
            return segment["provider:physical_network"], False
    if network.get("segments"):
        raise exceptions.NovaException(f"No segment of network {network['id']} has a physical network")
    return network.get("provider:physical_network"), network.get("provider:network_type") in TUNNELED


def _bridge(port: Item, ovs_bridge: str) -> tuple[str | None, str | None]:
    """(bridge to plug into, OVS interface id)."""
    kind = port.get("binding:vif_type")
    details = port.get("binding:vif_details") or {}
    if kind == network_info.VIF_TYPE_BRIDGE:
        raise exceptions.NovaException("Ports bound to a plain Linux bridge are not supported; use Open vSwitch or OVN")
    if kind == network_info.VIF_TYPE_DVS:
        return port["network_id"], None
    over_ovs = kind in (network_info.VIF_TYPE_OVS, network_info.VIF_TYPE_AGILIO_OVS)
    user_space = kind == network_info.VIF_TYPE_VHOSTUSER
    if over_ovs or (user_space and details.get("vhostuser_ovs_plug")):
        return details.get("bridge_name", ovs_bridge)[: network_info.NIC_NAME_LEN], port["id"]
    if user_space and details.get("vhostuser_fp_plug"):
        return details.get("bridge_name", f"brq{port['network_id']}")[: network_info.NIC_NAME_LEN], None
    return None, None


def refreshed(
    rest: NeutronRest,
    ctxt: RequestContext,
    instance_uuid: str,
    project: str,
    cached: Sequence[Mapping[str, Any]],
    *,
    port_id: str | None,
    preserve: Collection[str],
    ovs_bridge: str,
) -> network_info.NetworkInfo:
    """The server's network info as Neutron has it now.

    Interfaces keep the order of `cached`; new ones come last, vanished ones go. With `port_id`
    only that one is looked at, and stays if its port is gone: the host still has to unplug it.
    """
    ports = {port["id"]: port for port in ports_of(rest, ctxt, instance_uuid, project)}
    kept = {*preserve, *network_info.preexisting_port_ids(cached)}
    if port_id is not None and cached:
        fresh = [ports[port_id]] if port_id in ports else []
    else:
        known = [vif["id"] for vif in cached if vif["id"] in ports]
        fresh = [ports[each] for each in dict.fromkeys([*known, *ports])]
    # What is to correct the record is asked for anew.
    built = build(rest, Memory(rest), ctxt, fresh, preserve=kept, ovs_bridge=ovs_bridge)
    if port_id is None or not cached:
        return built
    new = {vif["id"]: vif for vif in built}
    merged = [new.pop(vif["id"], dict(vif)) for vif in cached]
    return merged + list(new.values())
