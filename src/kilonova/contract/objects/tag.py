"""Tag."""

from __future__ import annotations

from typing import Any

from kilonova.contract.objects import types as t
from kilonova.contract.objects.base import WireList, WireObject, register


@register
class Tag(WireObject):
    """A tag of a server."""

    VERSION = "1.1"
    fields: Any = {
        "resource_id": t.String(),
        "tag": t.String(),
    }
    METHODS = {
        "create": "",
    }
    CLASS_METHODS = {
        "destroy": "resource_id, name",
        "exists": "resource_id, name",
    }


@register
class TagList(WireList):
    """A list of Tag objects."""

    VERSION = "1.1"
    fields: Any = {
        "objects": t.Objects("Tag"),
    }
    CLASS_METHODS = {
        "create": "resource_id, tags",
        "destroy": "resource_id",
        "get_by_resource_id": "resource_id",
    }
