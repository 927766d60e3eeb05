"""Virtual interface."""

from __future__ import annotations

from typing import Any

from kilonova.contract.objects import types as t
from kilonova.contract.objects.base import Persistent, WireList, WireObject, register


@register
class VirtualInterface(Persistent, WireObject):
    """A network interface of a server."""

    VERSION = "1.3"
    fields: Any = {
        "id": t.Integer(),
        "uuid": t.UUID(),
        "address": t.String(nullable=True),
        "instance_uuid": t.UUID(),
        "network_id": t.Integer(),
        "tag": t.String(nullable=True),
    }
    REMOVED = {
        "tag": "1.0",
    }
    METHODS = {
        "create": "",
        "destroy": "",
        "save": "",
    }
    CLASS_METHODS = {
        "delete_by_instance_uuid": "instance_uuid",
        "get_by_address": "address",
        "get_by_id": "vif_id",
        "get_by_instance_and_network": "instance_uuid, network_id",
        "get_by_uuid": "vif_uuid",
    }


@register
class VirtualInterfaceList(WireList):
    """A list of VirtualInterface objects."""

    VERSION = "1.0"
    fields: Any = {
        "objects": t.Objects("VirtualInterface"),
    }
    CLASS_METHODS = {
        "get_all": "",
        "get_by_instance_uuid": "instance_uuid, use_slave=False",
    }
