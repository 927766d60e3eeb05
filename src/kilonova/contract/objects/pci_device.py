"""Pci device."""

from __future__ import annotations

from typing import Any

from kilonova.contract.objects import types as t
from kilonova.contract.objects.base import Limit, Persistent, WireList, WireObject, register, version_tuple
from kilonova.contract.objects.enums import PciDeviceStatus, PciDeviceType


@register
class PciDevice(Persistent, WireObject):
    """A PCI device of a host and who has it."""

    VERSION = "1.7"
    fields: Any = {
        "id": t.Integer(),
        "uuid": t.UUID(),
        "address": t.String(),
        "compute_node_id": t.Integer(nullable=True),
        "dev_id": t.String(nullable=True),
        "dev_type": t.Choice(PciDeviceType),
        "extra_info": t.DictOfStrings(default={}),
        "instance_uuid": t.String(nullable=True),
        "label": t.String(nullable=True),
        "numa_node": t.Integer(nullable=True),
        "parent_addr": t.String(nullable=True),
        "product_id": t.String(),
        "request_id": t.String(nullable=True),
        "status": t.Choice(PciDeviceStatus),
        "vendor_id": t.String(),
    }
    REMOVED = {
        "parent_addr": "1.3",
        "request_id": "1.1",
        "uuid": "1.5",
    }
    LIMITS = {
        "dev_type": {"vdpa": Limit("1.6")},
    }
    METHODS = {
        "save": "",
    }
    CLASS_METHODS = {
        "get_by_dev_addr": "compute_node_id, dev_addr",
        "get_by_dev_id": "id",
    }

    def obj_make_compatible(self, primitive: dict[str, Any], target_version: str) -> None:
        """As every object; receivers up to 1.3 look for the physical function in `extra_info`."""
        if version_tuple(target_version) < (1, 4) and primitive.get("parent_addr") is not None:
            extra_info = primitive.get("extra_info", {}) | {"phys_function": primitive["parent_addr"]}
            primitive["extra_info"] = extra_info
        super().obj_make_compatible(primitive, target_version)


@register
class PciDeviceList(WireList):
    """A list of PciDevice objects."""

    VERSION = "1.3"
    fields: Any = {
        "objects": t.Objects("PciDevice"),
    }
    CLASS_METHODS = {
        "get_by_compute_node": "node_id",
        "get_by_instance_uuid": "uuid",
        "get_by_parent_address": "node_id, parent_addr",
    }
