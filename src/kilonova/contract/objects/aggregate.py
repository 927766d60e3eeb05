"""Aggregates."""

from __future__ import annotations

from typing import Any

from kilonova.contract.objects import types as t
from kilonova.contract.objects.base import Persistent, WireList, WireObject, register


@register
class Aggregate(Persistent, WireObject):
    """A group of hosts with metadata."""

    VERSION = "1.3"
    fields: Any = {
        "id": t.Integer(),
        "uuid": t.UUID(),
        "hosts": t.ListOfStrings(nullable=True),
        "metadata": t.DictOfStrings(nullable=True),
        "name": t.String(),
    }
    METHODS = {
        "add_host": "host",
        "create": "",
        "delete_host": "host",
        "destroy": "",
        "save": "",
        "update_metadata": "updates",
    }
    CLASS_METHODS = {
        "get_by_id": "aggregate_id",
        "get_by_uuid": "aggregate_uuid",
    }
    obj_extra_fields = ["availability_zone"]

    @property
    def availability_zone(self) -> str | None:
        """The zone that the aggregate's hosts are in, if it makes one."""
        zone: str | None = self.metadata.get("availability_zone")
        return zone


@register
class AggregateList(WireList):
    """A list of Aggregate objects."""

    VERSION = "1.3"
    fields: Any = {
        "objects": t.Objects("Aggregate"),
    }
    CLASS_METHODS = {
        "get_all": "",
        "get_by_host": "host, key=None",
        "get_by_metadata": "key=None, value=None",
        "get_by_metadata_key": "key, hosts=None",
    }
