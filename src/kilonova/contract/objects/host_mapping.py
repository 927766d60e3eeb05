"""Host mapping."""

from __future__ import annotations

from typing import Any

from kilonova.contract.objects import types as t
from kilonova.contract.objects.base import Timestamped, WireList, WireObject, register


@register
class HostMapping(Timestamped, WireObject):
    """In which cell a host is."""

    VERSION = "1.0"
    fields: Any = {
        "id": t.Integer(read_only=True),
        "cell_mapping": t.Object("CellMapping"),
        "host": t.String(),
    }
    METHODS = {
        "create": "",
        "destroy": "",
        "save": "",
    }
    CLASS_METHODS = {
        "get_by_host": "host",
    }


@register
class HostMappingList(WireList):
    """A list of HostMapping objects."""

    VERSION = "1.1"
    fields: Any = {
        "objects": t.Objects("HostMapping"),
    }
    CLASS_METHODS = {
        "get_all": "",
        "get_by_cell_id": "cell_id",
    }
