"""Migration context."""

from __future__ import annotations

from typing import Any

from kilonova.contract.objects import types as t
from kilonova.contract.objects.base import Persistent, WireObject, register


@register
class MigrationContext(Persistent, WireObject):
    """Resources of a server before and after a move that is under way."""

    VERSION = "1.2"
    fields: Any = {
        "instance_uuid": t.UUID(),
        "migration_id": t.Integer(),
        "new_numa_topology": t.Object("InstanceNUMATopology", nullable=True),
        "new_pci_devices": t.Object("PciDeviceList", nullable=True),
        "new_pci_requests": t.Object("InstancePCIRequests", nullable=True),
        "new_resources": t.Object("ResourceList", nullable=True),
        "old_numa_topology": t.Object("InstanceNUMATopology", nullable=True),
        "old_pci_devices": t.Object("PciDeviceList", nullable=True),
        "old_pci_requests": t.Object("InstancePCIRequests", nullable=True),
        "old_resources": t.Object("ResourceList", nullable=True),
    }
    REMOVED = {
        "new_pci_devices": "1.0",
        "new_pci_requests": "1.0",
        "new_resources": "1.1",
        "old_pci_devices": "1.0",
        "old_pci_requests": "1.0",
        "old_resources": "1.1",
    }
    CLASS_METHODS = {
        "get_by_instance_uuid": "instance_uuid",
    }
