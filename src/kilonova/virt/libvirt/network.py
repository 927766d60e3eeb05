"""Network cards: what the guest sees, and plugging them into the host's switch through os-vif."""

from __future__ import annotations

import dataclasses
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

import os_vif
import os_vif.exception
from os_vif import objects as osv
from oslo_config import cfg
from oslo_log import log
from oslo_utils import strutils

from kilonova.base.outward import without_paths
from kilonova.contract import exceptions, network_info
from kilonova.virt.driver import Vif
from kilonova.virt.libvirt import tap
from kilonova.virt.libvirt.config.interface import Interface

LOG = log.getLogger(__name__)

VIF_MODELS = frozenset(
    {"virtio", "ne2k_pci", "pcnet", "rtl8139", "e1000", "e1000e", "igb", "lan9118", "vmxnet3", "spapr-vlan"}
)

_RATES = {"average", "peak", "burst"}


@dataclasses.dataclass(frozen=True)
class Owner:
    """Whose interface it is."""

    uuid: str
    name: str
    project_id: str | None


def initialize() -> None:
    """Load os-vif's plugins."""
    os_vif.initialize()


def interfaces(
    conf: cfg.ConfigOpts,
    vifs: Sequence[Vif],
    properties: Mapping[str, Any],
    extra_specs: Mapping[str, str],
    vcpus: int,
) -> list[Interface]:
    """Raises VirtualInterfacePlugException for kinds of ports this driver does not know, UnsupportedHardware."""
    card = _card(conf, properties, extra_specs, vcpus)
    rates = _bandwidth(extra_specs)
    return [_interface(vif, card, rates) for vif in vifs]


def plug(vifs: Sequence[Vif], owner: Owner, multiqueue: bool = False) -> None:
    """Connect all; repeating it is no error. Raises VirtualInterfacePlugException."""
    for vif in vifs:
        if kind_of(vif) == network_info.VIF_TYPE_TAP:
            _plug_tap(vif, multiqueue)
            continue
        try:
            os_vif.plug(_os_vif(vif, multiqueue), _instance(owner))
        except os_vif.exception.ExceptionBase as failure:
            raise _not_plugged(vif, str(failure)) from failure


def _plug_tap(vif: Vif, multiqueue: bool) -> None:
    try:
        tap.create(device_name(vif), multiqueue, _mtu(vif))
    except subprocess.CalledProcessError as failure:
        raise _not_plugged(vif, failure.stderr.decode(errors="replace").strip()) from failure


def _not_plugged(vif: Vif, said: str) -> exceptions.VirtualInterfacePlugException:
    LOG.warning("Port %s was not plugged: %s", vif["id"], said)
    return exceptions.VirtualInterfacePlugException(f"Port {vif['id']} was not plugged: {without_paths(said)}")


def unplug(vifs: Sequence[Vif], owner: Owner) -> list[str]:
    """Disconnect all, going on past failures; returns one message for each that failed."""
    failures = []
    for vif in vifs:
        try:
            if kind_of(vif) == network_info.VIF_TYPE_TAP:
                tap.delete(device_name(vif))
            else:
                os_vif.unplug(_os_vif(vif), _instance(owner))
        except exceptions.VirtualInterfacePlugException as failure:
            # A port that never got bound was never plugged.
            LOG.debug("Port %s has nothing to unplug: %s", vif["id"], failure)
        except (os_vif.exception.ExceptionBase, subprocess.CalledProcessError) as failure:
            failures.append(f"port {vif['id']}: {failure}")
    return failures


def events_of(vifs: Sequence[Vif]) -> list[tuple[str, str]]:
    """The events that tell when the network has wired up those interfaces that are not active yet."""
    return [
        ("network-vif-plugged", vif["id"])
        for vif in vifs
        if vif.get("active", True) is False and vif.get("vnic_type") != network_info.VNIC_REMOTE_MANAGED
    ]


def wants_multiqueue(properties: Mapping[str, Any], extra_specs: Mapping[str, str], vcpus: int) -> bool:
    asked = extra_specs.get("hw:vif_multiqueue_enabled", properties.get("hw_vif_multiqueue_enabled", False))
    return strutils.bool_from_string(asked) and vcpus > 1


def device_name(vif: Vif) -> str:
    return str(vif.get("devname") or f"nic{vif['id']}"[: network_info.NIC_NAME_LEN])


def kind_of(vif: Vif) -> str:
    """ovs or tap. Raises VirtualInterfacePlugException for any other, saying why."""
    kind, vnic = vif.get("type"), vif.get("vnic_type") or network_info.VNIC_NORMAL
    if kind in (network_info.VIF_TYPE_UNBOUND, network_info.VIF_TYPE_BINDING_FAILED, None):
        raise exceptions.VirtualInterfacePlugException(f"Port {vif['id']} is not bound to this host ({kind})")
    if kind not in (network_info.VIF_TYPE_OVS, network_info.VIF_TYPE_TAP):
        raise exceptions.VirtualInterfacePlugException(f"Port {vif['id']} has the unsupported type {kind}")
    if vnic != network_info.VNIC_NORMAL:
        raise exceptions.VirtualInterfacePlugException(f"Port {vif['id']} has the unsupported VNIC type {vnic}")
    return str(kind)


def _is_hybrid(vif: Vif) -> bool:
    """Whether security groups are done by a Linux bridge between guest and switch."""
    return bool((vif.get("details") or {}).get("ovs_hybrid_plug", False))


def _hybrid_bridge(vif: Vif) -> str:
    return f"qbr{vif['id']}"[: network_info.NIC_NAME_LEN]


def _mtu(vif: Vif) -> int | None:
    mtu = (vif.get("network") or {}).get("meta", {}).get("mtu")
    return int(mtu) if mtu else None


def _interface(vif: Vif, card: Interface, rates: Mapping[str, dict[str, int]]) -> Interface:
    details = vif.get("details") or {}
    common = dataclasses.replace(card, mac=vif["address"], target=device_name(vif), mtu=_mtu(vif))
    if kind_of(vif) == network_info.VIF_TYPE_TAP:
        return dataclasses.replace(common, managed=False)
    common = dataclasses.replace(common, inbound=rates["inbound"], outbound=rates["outbound"])
    if _is_hybrid(vif):
        return dataclasses.replace(common, type="bridge", bridge=_hybrid_bridge(vif))
    if details.get("ovs_create_tap", False):
        return dataclasses.replace(common, managed=False)
    if vif.get("delegate_create", False):
        return common
    bridge = vif["network"]["bridge"]
    return dataclasses.replace(
        common, type="bridge", bridge=bridge, openvswitch_id=vif.get("ovs_interfaceid") or vif["id"]
    )


def _card(conf: cfg.ConfigOpts, properties: Mapping[str, Any], extra_specs: Mapping[str, str], vcpus: int) -> Interface:
    """What all of a guest's cards have in common."""
    default = "virtio" if conf.libvirt.use_virtio_for_bridges else None
    model = properties.get("hw_vif_model") or default
    if model is not None and model not in VIF_MODELS:
        raise exceptions.UnsupportedHardware(model=model, virt=conf.libvirt.virt_type)
    packed = strutils.bool_from_string(
        extra_specs.get("hw:virtio_packed_ring", properties.get("hw_virtio_packed_ring", False))
    )
    card = Interface("ethernet", "", model=model, packed=packed)
    if model != "virtio":
        return card
    if conf.libvirt.virt_type == "qemu":
        # libvirt would open the kernel's vhost for emulated guests as well.
        return dataclasses.replace(card, driver="qemu")
    queues = None
    if wants_multiqueue(properties, extra_specs, vcpus):
        queues = min(vcpus, most_queues(conf))
    rx_queue_size = conf.libvirt.rx_queue_size
    driver = "vhost" if queues or rx_queue_size else None
    return dataclasses.replace(card, driver=driver, queues=queues, rx_queue_size=rx_queue_size)


def most_queues(conf: cfg.ConfigOpts) -> int:
    """How many queues a tap device can have: 256 since Linux 4.0."""
    return int(conf.libvirt.max_queues or 256)


def _bandwidth(extra_specs: Mapping[str, str]) -> dict[str, dict[str, int]]:
    """`quota:vif_inbound_average` ... as limits, in kilobytes (per second)."""
    found: dict[str, dict[str, int]] = {}
    for way in ("inbound", "outbound"):
        given = {rate: extra_specs.get(f"quota:vif_{way}_{rate}") for rate in sorted(_RATES)}
        found[way] = {rate: int(value) for rate, value in given.items() if value is not None}
    return found


def _instance(owner: Owner) -> osv.instance_info.InstanceInfo:
    info = osv.instance_info.InstanceInfo(uuid=owner.uuid, name=owner.name)
    if owner.project_id is not None:
        info.project_id = owner.project_id
    return info


def _os_vif(vif: Vif, multiqueue: bool = False) -> osv.vif.VIFBase:
    kind_of(vif)
    details = vif.get("details") or {}
    profile = osv.vif.VIFPortProfileOpenVSwitch(
        interface_id=vif.get("ovs_interfaceid") or vif["id"],
        datapath_type=details.get("datapath_type"),
        create_tap=bool(details.get("ovs_create_tap", False)),
        multiqueue=multiqueue,
    )
    common: dict[str, Any] = {
        "id": vif["id"],
        "address": vif["address"],
        "network": _network(vif["network"]),
        "has_traffic_filtering": bool(details.get("port_filter", False)),
        "preserve_on_delete": bool(vif.get("preserve_on_delete", False)),
        "active": bool(vif.get("active", False)),
        "plugin": "ovs",
        "port_profile": profile,
        "vif_name": device_name(vif),
    }
    if _is_hybrid(vif):
        return osv.vif.VIFBridge(bridge_name=_hybrid_bridge(vif), **common)
    profile.create_port = bool(vif.get("delegate_create", False))
    return osv.vif.VIFOpenVSwitch(bridge_name=vif["network"]["bridge"], **common)


def _network(network: Mapping[str, Any]) -> osv.network.Network:
    """What the plugins read: identity, bridge and MTU; addresses are not theirs to know."""
    made = osv.network.Network(id=network["id"], bridge=network["bridge"], subnets=osv.subnet.SubnetList(objects=[]))
    if network.get("label") is not None:
        made.label = network["label"]
    if mtu := network.get("meta", {}).get("mtu"):
        made.mtu = mtu
    return made
