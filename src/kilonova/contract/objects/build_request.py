"""Build requests."""

from __future__ import annotations

from typing import Any

from kilonova.contract.objects import types as t
from kilonova.contract.objects.base import WireList, WireObject, register


@register
class BuildRequest(WireObject):
    """A server that was asked for and has no cell yet."""

    VERSION = "1.3"
    fields: Any = {
        "id": t.Integer(),
        "block_device_mappings": t.Object("BlockDeviceMappingList"),
        "created_at": t.DateTime(nullable=True),
        "instance": t.Object("Instance"),
        "instance_uuid": t.UUID(),
        "project_id": t.String(),
        "tags": t.Object("TagList"),
        "updated_at": t.DateTime(nullable=True),
    }
    REMOVED = {
        "block_device_mappings": "1.0",
        "tags": "1.2",
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
class BuildRequestList(WireList):
    """A list of BuildRequest objects."""

    VERSION = "1.0"
    fields: Any = {
        "objects": t.Objects("BuildRequest"),
    }
    CLASS_METHODS = {
        "get_all": "",
        "get_by_filters": "filters, limit=None, marker=None, sort_keys=None, sort_dirs=None",
    }
