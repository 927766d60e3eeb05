"""The network-info model: what a server's interfaces look like in the info cache and on the bus.

A network info is a list of VIFs; all of it is plain JSON data with Nova's keys
(`instance_info_caches.network_info`, RPC argument `network_info`). Builders make
complete entries; readers walk them. Addresses are strings, versions 4 or 6.
"""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

Vif: TypeAlias = dict[str, Any]
NetworkInfo: TypeAlias = list[Vif]

NIC_NAME_LEN = 14
"""Longest host-side interface name; tap device names are cut to it."""

VIF_TYPE_OVS = "ovs"
VIF_TYPE_AGILIO_OVS = "agilio_ovs"
VIF_TYPE_BRIDGE = "bridge"
VIF_TYPE_DVS = "dvs"
VIF_TYPE_HW_VEB = "hw_veb"
VIF_TYPE_HYPERV = "hyperv"
VIF_TYPE_TAP = "tap"
VIF_TYPE_VHOSTUSER = "vhostuser"
VIF_TYPE_VIF = "vif"
VIF_TYPE_UNBOUND = "unbound"
VIF_TYPE_BINDING_FAILED = "binding_failed"

GUEST_VISIBLE_VIF_TYPES = (
    VIF_TYPE_BRIDGE,
    VIF_TYPE_DVS,
    VIF_TYPE_HW_VEB,
    VIF_TYPE_HYPERV,
    VIF_TYPE_OVS,
    VIF_TYPE_TAP,
    VIF_TYPE_VHOSTUSER,
    VIF_TYPE_VIF,
)
"""VIF types that network_data.json names; any other is shown as `phy`."""

VNIC_NORMAL = "normal"
VNIC_DIRECT = "direct"
VNIC_MACVTAP = "macvtap"
VNIC_DIRECT_PHYSICAL = "direct-physical"
VNIC_BAREMETAL = "baremetal"
VNIC_VIRTIO_FORWARDER = "virtio-forwarder"
VNIC_VDPA = "vdpa"
VNIC_ACCELERATOR_DIRECT = "accelerator-direct"
VNIC_ACCELERATOR_DIRECT_PHYSICAL = "accelerator-direct-physical"
VNIC_REMOTE_MANAGED = "remote-managed"

SRIOV_VNIC_TYPES = frozenset(
    {
        VNIC_DIRECT,
        VNIC_MACVTAP,
        VNIC_DIRECT_PHYSICAL,
        VNIC_VIRTIO_FORWARDER,
        VNIC_VDPA,
        VNIC_REMOTE_MANAGED,
    }
)
"""Ports that need a PCI device of their own."""

ACCELERATOR_VNIC_TYPES = frozenset({VNIC_ACCELERATOR_DIRECT, VNIC_ACCELERATOR_DIRECT_PHYSICAL})

PASSTHROUGH_VNIC_TYPES = frozenset(
    {
        VNIC_DIRECT,
        VNIC_DIRECT_PHYSICAL,
        VNIC_ACCELERATOR_DIRECT,
        VNIC_ACCELERATOR_DIRECT_PHYSICAL,
        VNIC_REMOTE_MANAGED,
        VNIC_VDPA,
    }
)
"""Ports whose device goes straight into the guest."""


def loads(text: str | None) -> NetworkInfo:
    """The model from the info cache's JSON; nothing stored means no interfaces."""
    return json.loads(text) if text else []


def dumps(info: Sequence[Mapping[str, Any]]) -> str:
    return json.dumps(info)


def ip(address: str | None, kind: Literal["gateway", "dns", "floating"] | None) -> dict[str, Any]:
    """An address that is not the interface's own. Raises ValueError for a malformed one."""
    version = ipaddress.ip_address(address).version if address else None
    return {"address": address, "type": kind, "version": version, "meta": {}}


def fixed_ip(address: str, floating: Iterable[str] = ()) -> dict[str, Any]:
    """An interface's own address with the floating addresses that lead to it."""
    return {
        "address": address,
        "type": "fixed",
        "version": ipaddress.ip_address(address).version,
        "meta": {},
        "floating_ips": [ip(each, "floating") for each in floating],
    }


def route(cidr: str, gateway: str) -> dict[str, Any]:
    return {"cidr": cidr, "gateway": ip(gateway, "gateway"), "interface": None, "meta": {}}


def subnet(
    cidr: str,
    *,
    gateway: str | None = None,
    dns: Iterable[str] = (),
    routes: Iterable[Mapping[str, Any]] = (),
    ips: Iterable[Mapping[str, Any]] = (),
    **meta: Any,
) -> dict[str, Any]:
    """A subnet with the interface's fixed addresses in it; `meta` takes dhcp_server, enable_dhcp, ipv6_address_mode."""
    return {
        "cidr": cidr,
        "version": ipaddress.ip_network(cidr, strict=False).version,
        "gateway": ip(gateway, "gateway"),
        "dns": [ip(each, "dns") for each in dns],
        "routes": list(routes),
        "ips": list(ips),
        "meta": meta,
    }


def is_dhcp(subnet: Mapping[str, Any]) -> bool:
    """Whether DHCP tells guests in the subnet what they need: where OVN serves it there is no server with a port."""
    return bool(subnet["meta"].get("dhcp_server") or subnet["meta"].get("enable_dhcp"))


def network(
    network_id: str,
    *,
    label: str | None,
    bridge: str | None,
    subnets: Iterable[Mapping[str, Any]] = (),
    **meta: Any,
) -> dict[str, Any]:
    """`meta` takes injected, tenant_id, mtu, physical_network, tunneled."""
    return {"id": network_id, "bridge": bridge, "label": label, "subnets": list(subnets), "meta": meta}


def vif(
    port_id: str,
    address: str,
    network: Mapping[str, Any],
    *,
    type: str | None,
    details: Mapping[str, Any] | None = None,
    profile: Mapping[str, Any] | None = None,
    vnic_type: str = VNIC_NORMAL,
    ovs_interfaceid: str | None = None,
    active: bool = False,
    preserve_on_delete: bool = False,
) -> Vif:
    """One interface. `preserve_on_delete`: the port was there before the server and outlives it."""
    return {
        "id": port_id,
        "address": address,
        "network": dict(network),
        "type": type,
        "details": dict(details or {}),
        "devname": f"tap{port_id}"[:NIC_NAME_LEN],
        "ovs_interfaceid": ovs_interfaceid,
        "qbh_params": None,
        "qbg_params": None,
        "active": active,
        "vnic_type": vnic_type,
        "profile": dict(profile or {}),
        "preserve_on_delete": preserve_on_delete,
        "delegate_create": True,
        "meta": {},
    }


def fixed_ips(vif: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The interface's fixed addresses, in subnet order."""
    for each in (vif.get("network") or {}).get("subnets", ()):
        yield from each["ips"]


def floating_ips(vif: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for each in fixed_ips(vif):
        yield from each.get("floating_ips", ())


def addresses(vif: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """All addresses as the API lists them: the fixed ones, then the floating ones."""
    yield from fixed_ips(vif)
    yield from floating_ips(vif)


def physical_network(vif: Mapping[str, Any]) -> str | None:
    """The provider's physical network, from the network or else from the binding details."""
    from_network = (vif.get("network") or {}).get("meta", {}).get("physical_network")
    return from_network or (vif.get("details") or {}).get("physical_network")


def preexisting_port_ids(info: Iterable[Mapping[str, Any]]) -> list[str]:
    """Ports that must be unbound, not deleted, when the server goes."""
    return [each["id"] for each in info if each.get("preserve_on_delete")]
