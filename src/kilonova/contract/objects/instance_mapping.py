"""Instance mapping."""

from __future__ import annotations

from typing import Any

from kilonova.contract.objects import types as t
from kilonova.contract.objects.base import Timestamped, WireList, WireObject, register


@register
class InstanceMapping(Timestamped, WireObject):
    """In which cell a server is."""

    VERSION = "1.2"
    fields: Any = {
        "id": t.Integer(read_only=True),
        "cell_mapping": t.Object("CellMapping", nullable=True),
        "instance_uuid": t.UUID(),
        "project_id": t.String(),
        "queued_for_delete": t.Boolean(default=False),
        "user_id": t.String(),
    }
    REMOVED = {
        "queued_for_delete": "1.0",
        "user_id": "1.1",
    }
    METHODS = {
        "create": "",
        "destroy": "",
        "save": "",
    }
    CLASS_METHODS = {
        "get_by_instance_uuid": "instance_uuid",
    }


@register
class InstanceMappingList(WireList):
    """A list of InstanceMapping objects."""

    VERSION = "1.3"
    fields: Any = {
        "objects": t.Objects("InstanceMapping"),
    }
    CLASS_METHODS = {
        "get_by_cell_id": "cell_id",
        "get_by_instance_uuids": "uuids",
        "get_by_project_id": "project_id",
        "get_counts": "project_id, user_id=None",
    }
