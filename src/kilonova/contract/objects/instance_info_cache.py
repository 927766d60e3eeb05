"""Instance info cache."""

from __future__ import annotations

from typing import Any

from kilonova.contract.objects import types as t
from kilonova.contract.objects.base import Persistent, WireObject, register


@register
class InstanceInfoCache(Persistent, WireObject):
    """The network info of a server."""

    VERSION = "1.5"
    fields: Any = {
        "instance_uuid": t.UUID(),
        "network_info": t.NetworkModelField(nullable=True),
    }
    METHODS = {
        "delete": "",
        "refresh": "",
        "save": "update_cells=True",
    }
    CLASS_METHODS = {
        "get_by_instance_uuid": "instance_uuid",
    }
