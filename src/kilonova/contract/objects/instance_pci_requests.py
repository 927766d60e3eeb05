"""Instance pci requests."""

from __future__ import annotations

from typing import Any

from kilonova.contract.objects import types as t
from kilonova.contract.objects.base import WireObject, register
from kilonova.contract.objects.enums import PCINUMAAffinityPolicy


@register
class InstancePCIRequest(WireObject):
    """A request for PCI devices, of a flavor or of a port."""

    VERSION = "1.4"
    fields: Any = {
        "alias_name": t.String(nullable=True),
        "count": t.Integer(),
        "is_new": t.Boolean(default=False),
        "numa_policy": t.Choice(PCINUMAAffinityPolicy, nullable=True),
        "request_id": t.UUID(nullable=True),
        "requester_id": t.String(nullable=True),
        "spec": t.ListOfDictOfNullableStrings(),
    }
    REMOVED = {
        "numa_policy": "1.1",
        "request_id": "1.0",
        "requester_id": "1.2",
    }


@register
class InstancePCIRequests(WireObject):
    """All PCI requests of a server."""

    VERSION = "1.1"
    fields: Any = {
        "instance_uuid": t.UUID(),
        "requests": t.Objects("InstancePCIRequest"),
    }
    CLASS_METHODS = {
        "get_by_instance_uuid": "instance_uuid",
    }
