"""Pci device pool."""

from __future__ import annotations

from typing import Any

from kilonova.contract.objects import types as t
from kilonova.contract.objects.base import WireList, WireObject, register


@register
class PciDevicePool(WireObject):
    """PCI devices of a host that are alike."""

    VERSION = "1.1"
    fields: Any = {
        "count": t.Integer(),
        "numa_node": t.Integer(nullable=True),
        "product_id": t.String(),
        "tags": t.DictOfNullableStrings(),
        "vendor_id": t.String(),
    }
    REMOVED = {
        "numa_node": "1.0",
    }


@register
class PciDevicePoolList(WireList):
    """A list of PciDevicePool objects."""

    VERSION = "1.1"
    fields: Any = {
        "objects": t.Objects("PciDevicePool"),
    }
