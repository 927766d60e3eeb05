"""Network settings in the form of Debian's interfaces(5), for guests of networks whose addresses are injected."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kilonova.contract.network_info import is_dhcp

_HEAD = """\
# Written by the cloud when the server was built; see interfaces(5).
auto lo
iface lo inet loopback
"""


def interfaces_file(network_info: Sequence[Mapping[str, Any]]) -> bytes | None:
    """The file, or None when no network asks for injection or DHCP tells the addresses."""
    stanzas = list(_stanzas(network_info))
    return (_HEAD + "".join(stanzas)).encode() if stanzas else None


def _stanzas(network_info: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    number = -1
    for vif in network_info:
        network = vif.get("network") or {}
        if not network.get("subnets"):
            continue
        number += 1
        subnets = _firsts(network["subnets"])
        if not network["meta"].get("injected") or any(map(is_dhcp, subnets)):
            continue
        found = [_stanza(f"eth{number}", subnet) for subnet in subnets if subnet["ips"]]
        if found:
            yield f"\nauto eth{number}\n" + "".join(found)


def _firsts(subnets: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    firsts = (next((each for each in subnets if each["version"] == version), None) for version in (4, 6))
    return [each for each in firsts if each is not None]


def _stanza(name: str, subnet: Mapping[str, Any]) -> str:
    network = ipaddress.ip_network(subnet["cidr"], strict=False)
    family = "inet" if network.version == 4 else "inet6"
    mask = str(network.netmask) if network.version == 4 else str(network.prefixlen)
    lines = [f"iface {name} {family} static", f"    address {subnet['ips'][0]['address']}", f"    netmask {mask}"]
    if network.version == 4:
        lines.append(f"    broadcast {network.broadcast_address}")
    if gateway := (subnet.get("gateway") or {}).get("address"):
        lines.append(f"    gateway {gateway}")
    if servers := [each["address"] for each in subnet.get("dns") or ()]:
        lines.append(f"    dns-nameservers {' '.join(servers)}")
    lines += [f"    up ip route add {route['cidr']} via {route['gateway']['address']}" for route in subnet["routes"]]
    return "\n".join(lines) + "\n"
