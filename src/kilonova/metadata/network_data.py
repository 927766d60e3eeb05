"""network_data.json: links, networks and name servers, as guests configure themselves by it.

Source: the schema published with the metadata service's documentation.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kilonova.contract.network_info import GUEST_VISIBLE_VIF_TYPES, is_dhcp

Json = dict[str, Any]
_ANY = {4: ("0.0.0.0", "0.0.0.0"), 6: ("::", "::")}  # noqa: S104 - a route's destination


def network_data(network_info: Sequence[Mapping[str, Any]]) -> Json | None:
    """Links, networks, services; None without interfaces. Of each one the first IPv4 and the first IPv6 subnet."""
    if not network_info:
        return None
    links: list[Json] = []
    networks: list[Json] = []
    services: list[Json] = []
    for vif in network_info:
        subnets = _subnets(vif)
        if not subnets:
            continue
        links.append(link := _link(vif, len(links)))
        for subnet in subnets:
            if subnet["ips"]:
                networks.append(_network(vif, subnet, len(networks), link["id"]))
                services += [each for each in _services(subnet) if each not in services]
    return {"links": links, "networks": networks, "services": services}


def _subnets(vif: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    found = (vif.get("network") or {}).get("subnets") or []
    firsts = (next((each for each in found if each["version"] == version), None) for version in (4, 6))
    return [each for each in firsts if each is not None]


def _link(vif: Mapping[str, Any], number: int) -> Json:
    return {
        "id": vif.get("devname") or f"interface{number}",
        "vif_id": vif["id"],
        "type": vif.get("type") if vif.get("type") in GUEST_VISIBLE_VIF_TYPES else "phy",
        "mtu": _mtu(vif),
        "ethernet_mac_address": vif.get("address"),
    }


def _mtu(vif: Mapping[str, Any]) -> int | None:
    """None where DHCP tells it."""
    network = vif["network"]
    if any(map(is_dhcp, network["subnets"])):
        return None
    mtu: int | None = network["meta"].get("mtu")
    return mtu


def _network(vif: Mapping[str, Any], subnet: Mapping[str, Any], number: int, link: str) -> Json:
    version, mode = subnet["version"], subnet["meta"].get("ipv6_address_mode")
    common = {"id": f"network{number}", "link": link, "network_id": vif["network"]["id"]}
    if mode is None and is_dhcp(subnet):
        return {**common, "type": f"ipv{version}_dhcp"}
    return {
        **common,
        "type": f"ipv{version}" + (f"_{mode}" if mode is not None else ""),
        "ip_address": subnet["ips"][0]["address"],
        "netmask": _netmask(subnet["cidr"]),
        "routes": [*_default_route(subnet), *map(_route, subnet["routes"])],
        "services": _services(subnet),
    }


def _netmask(cidr: str) -> str:
    return str(ipaddress.ip_network(cidr, strict=False).netmask)


def _default_route(subnet: Mapping[str, Any]) -> list[Json]:
    gateway = (subnet.get("gateway") or {}).get("address")
    if not gateway:
        return []
    destination, mask = _ANY[subnet["version"]]
    return [{"network": destination, "netmask": mask, "gateway": gateway}]


def _route(route: Mapping[str, Any]) -> Json:
    destination = ipaddress.ip_network(route["cidr"], strict=False)
    return {
        "network": str(destination.network_address),
        "netmask": str(destination.netmask),
        "gateway": route["gateway"]["address"],
    }


def _services(subnet: Mapping[str, Any]) -> list[Json]:
    servers: Iterable[Mapping[str, Any]] = subnet.get("dns") or ()
    return [{"type": "dns", "address": each.get("address")} for each in servers]
