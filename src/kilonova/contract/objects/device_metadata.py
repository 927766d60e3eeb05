"""Device metadata."""

from __future__ import annotations

from typing import Any

from kilonova.contract.objects import types as t
from kilonova.contract.objects.base import WireObject, register


@register
class DeviceBus(WireObject):
    """Where a device sits; one subclass per kind of bus."""

    VERSION = "1.0"


@register
class DeviceMetadata(WireObject):
    """A device as the guest sees it, with its tags."""

    VERSION = "1.0"
    fields: Any = {
        "bus": t.Object("DeviceBus", subclasses=True),
        "tags": t.ListOfStrings(),
    }


@register
class DiskMetadata(DeviceMetadata):
    """A disk as the guest sees it."""

    VERSION = "1.0"
    fields: Any = {
        "path": t.String(nullable=True),
        "serial": t.String(nullable=True),
    }


@register
class IDEDeviceBus(DeviceBus):
    """An IDE address."""

    VERSION = "1.0"
    fields: Any = {
        "address": t.IDEAddressField(),
    }


@register
class InstanceDeviceMetadata(WireObject):
    """All tagged devices of a server."""

    VERSION = "1.0"
    fields: Any = {
        "devices": t.Objects("DeviceMetadata", subclasses=True),
    }
    CLASS_METHODS = {
        "get_by_instance_uuid": "instance_uuid",
    }


@register
class NetworkInterfaceMetadata(DeviceMetadata):
    """A network interface as the guest sees it."""

    VERSION = "1.2"
    fields: Any = {
        "mac": t.MACAddress(),
        "vf_trusted": t.Boolean(default=False),
        "vlan": t.Integer(),
    }
    REMOVED = {
        "vf_trusted": "1.1",
        "vlan": "1.0",
    }


@register
class PCIDeviceBus(DeviceBus):
    """A PCI address."""

    VERSION = "1.0"
    fields: Any = {
        "address": t.PCIAddress(),
    }


@register
class SCSIDeviceBus(DeviceBus):
    """A SCSI address."""

    VERSION = "1.0"
    fields: Any = {
        "address": t.SCSIAddressField(),
    }


@register
class ShareMetadata(DeviceMetadata):
    """A shared file system as the guest sees it."""

    VERSION = "1.0"
    fields: Any = {
        "share_id": t.String(nullable=True),
        "tag": t.String(nullable=True),
    }


@register
class USBDeviceBus(DeviceBus):
    """A USB address."""

    VERSION = "1.0"
    fields: Any = {
        "address": t.USBAddressField(),
    }


@register
class XenDeviceBus(DeviceBus):
    """A Xen address."""

    VERSION = "1.0"
    fields: Any = {
        "address": t.XenAddressField(),
    }
