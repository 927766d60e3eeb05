"""Instance fault."""

from __future__ import annotations

from typing import Any

from kilonova.contract.objects import types as t
from kilonova.contract.objects.base import DictCompat, Persistent, WireList, WireObject, register


@register
class InstanceFault(Persistent, WireObject, DictCompat):
    """Why something failed on a server."""

    VERSION = "1.2"
    fields: Any = {
        "id": t.Integer(),
        "code": t.Integer(),
        "details": t.String(nullable=True),
        "host": t.String(nullable=True),
        "instance_uuid": t.UUID(),
        "message": t.String(nullable=True),
    }
    METHODS = {
        "create": "",
    }
    CLASS_METHODS = {
        "get_latest_for_instance": "instance_uuid",
    }


@register
class InstanceFaultList(WireList):
    """A list of InstanceFault objects."""

    VERSION = "1.2"
    fields: Any = {
        "objects": t.Objects("InstanceFault"),
    }
    CLASS_METHODS = {
        "get_by_instance_uuids": "instance_uuids",
        "get_latest_by_instance_uuids": "instance_uuids",
    }
