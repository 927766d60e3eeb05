"""Cell mappings."""

from __future__ import annotations

from typing import Any

from kilonova.contract.objects import types as t
from kilonova.contract.objects.base import Timestamped, WireList, WireObject, register


@register
class CellMapping(Timestamped, WireObject):
    """A cell: where its database and message bus are."""

    VERSION = "1.1"
    fields: Any = {
        "id": t.Integer(read_only=True),
        "uuid": t.UUID(),
        "database_connection": t.String(),
        "disabled": t.Boolean(default=False),
        "name": t.String(nullable=True),
        "transport_url": t.String(),
    }
    REMOVED = {
        "disabled": "1.0",
    }
    METHODS = {
        "create": "",
        "destroy": "",
        "save": "",
    }
    CLASS_METHODS = {
        "get_by_uuid": "uuid",
    }


@register
class CellMappingList(WireList):
    """A list of CellMapping objects."""

    VERSION = "1.1"
    fields: Any = {
        "objects": t.Objects("CellMapping"),
    }
    CLASS_METHODS = {
        "get_all": "",
        "get_by_disabled": "disabled",
    }
