"""Tagged devices: which of the guest's devices the user's tags name, for the guest to read in its metadata."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from xml.etree import ElementTree as ET

from oslo_utils import strutils

from kilonova.contract import objects
from kilonova.virt.driver import GuestSpec, LocalDisk, Volume

_BUSES = {
    "pci": objects.PCIDeviceBus,
    "usb": objects.USBDeviceBus,
    "scsi": objects.SCSIDeviceBus,
    "ide": objects.IDEDeviceBus,
}


def of(guest: GuestSpec, domain: ET.Element) -> objects.InstanceDeviceMetadata | None:
    """The guest's tagged or otherwise noteworthy devices, with addresses from its defined domain; None without any."""
    devices = [*_interfaces(guest, domain), *_disks(guest, domain)]
    return objects.InstanceDeviceMetadata(devices=devices) if devices else None


def _interfaces(guest: GuestSpec, domain: ET.Element) -> Iterator[objects.DeviceMetadata]:
    found = {each.find("mac").get("address"): each for each in domain.iterfind("devices/interface[mac]")}  # type: ignore[union-attr]
    for vif in guest.network_info:
        tag = guest.interface_tags.get(vif["id"])
        vlan = (vif.get("details") or {}).get("vlan")
        trusted = strutils.bool_from_string((vif.get("profile") or {}).get("trusted", False))
        if vif["address"] not in found or not (tag or vlan or trusted):
            continue
        device = objects.NetworkInterfaceMetadata(mac=vif["address"], vf_trusted=trusted)
        if vlan:
            device.vlan = int(vlan)
        yield _with_bus(device, found[vif["address"]], tag)


def _disks(guest: GuestSpec, domain: ET.Element) -> Iterator[objects.DeviceMetadata]:
    found = {each.find("target").get("dev"): each for each in domain.iterfind("devices/disk[target]")}  # type: ignore[union-attr]
    blocks = guest.block_devices
    tagged: list[Volume | LocalDisk] = [*blocks.volumes, *blocks.ephemerals, *([blocks.swap] if blocks.swap else [])]
    for disk in tagged:
        name = (disk.mount_device if isinstance(disk, Volume) else disk.device_name) or ""
        element = found.get(name.removeprefix("/dev/"))
        if disk.tag is None or element is None:
            continue
        device = objects.DiskMetadata()
        if name:
            device.path = name if name.startswith("/dev/") else f"/dev/{name}"
        if isinstance(disk, Volume):
            device.serial = disk.volume_id
        yield _with_bus(device, element, disk.tag)


def _with_bus(device: objects.DeviceMetadata, element: ET.Element, tag: str | None) -> objects.DeviceMetadata:
    if tag:
        device.tags = [tag]
    address = element.find("address")
    if address is not None and (bus := _bus(element, address.attrib)) is not None:
        device.bus = bus
    return device


def _bus(element: ET.Element, address: Mapping[str, str]) -> Any:
    """A PCI device's address; of disks on a controller only the bus, as their addresses mean nothing inside."""
    target = element.find("target")
    if address.get("type") == "pci":
        parts = [int(address.get(name, "0"), 16) for name in ("domain", "bus", "slot", "function")]
        return _BUSES["pci"](address="{:04x}:{:02x}:{:02x}.{:x}".format(*parts))
    kind = target.get("bus", "") if target is not None else ""
    return _BUSES[kind]() if kind in _BUSES else None
