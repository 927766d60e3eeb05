"""Network request."""

from __future__ import annotations

from typing import Any

from kilonova.contract.objects import types as t
from kilonova.contract.objects.base import WireList, WireObject, register


@register
class NetworkRequest(WireObject):
    """One interface that a user asks for."""

    VERSION = "1.3"
    fields: Any = {
        "address": t.IPAddress(nullable=True),
        "arq_uuid": t.UUID(nullable=True),
        "device_profile": t.String(nullable=True),
        "network_id": t.String(nullable=True),
        "pci_request_id": t.UUID(nullable=True),
        "port_id": t.UUID(nullable=True),
        "tag": t.String(nullable=True),
    }
    REMOVED = {
        "arq_uuid": "1.2",
        "device_profile": "1.2",
        "tag": "1.1",
    }


@register
class NetworkRequestList(WireList):
    """A list of NetworkRequest objects."""

    VERSION = "1.1"
    fields: Any = {
        "objects": t.Objects("NetworkRequest"),
    }
