"""Service."""

from __future__ import annotations

from typing import Any

from kilonova.contract.objects import SERVICE_VERSION
from kilonova.contract.objects import types as t
from kilonova.contract.objects.base import DictCompat, Persistent, WireList, WireObject, register


@register
class Service(Persistent, WireObject, DictCompat):
    """A service process and when it was last heard of."""

    VERSION = "1.22"
    fields: Any = {
        "id": t.Integer(read_only=True),
        "uuid": t.UUID(),
        "availability_zone": t.String(nullable=True),
        "binary": t.String(nullable=True),
        "compute_node": t.Object("ComputeNode"),
        "disabled": t.Boolean(),
        "disabled_reason": t.String(nullable=True),
        "forced_down": t.Boolean(),
        "host": t.String(nullable=True),
        "last_seen_up": t.DateTime(nullable=True),
        "report_count": t.Integer(),
        "topic": t.String(nullable=True),
        "version": t.Integer(),
    }
    REMOVED = {
        "forced_down": "1.13",
        "last_seen_up": "1.12",
        "uuid": "1.20",
        "version": "1.15",
    }
    METHODS = {
        "create": "",
        "destroy": "",
        "save": "",
    }
    CLASS_METHODS = {
        "get_by_args": "host, binary",
        "get_by_compute_host": "host, use_slave=False",
        "get_by_host_and_binary": "host, binary",
        "get_by_host_and_topic": "host, topic",
        "get_by_id": "service_id",
        "get_by_uuid": "service_uuid",
        "get_minimum_version": "binary, use_slave=False",
        "get_minimum_version_multi": "binaries, use_slave=False",
    }

    def __init__(self, context: Any = None, **kwargs: Any) -> None:
        super().__init__(context=context, **{"version": SERVICE_VERSION} | kwargs)


@register
class ServiceList(WireList):
    """A list of Service objects."""

    VERSION = "1.19"
    fields: Any = {
        "objects": t.Objects("Service"),
    }
    CLASS_METHODS = {
        "get_all": "disabled=None, set_zones=False",
        "get_all_computes_by_hv_type": "hv_type",
        "get_by_binary": "binary, include_disabled=False",
        "get_by_host": "host",
        "get_by_topic": "topic",
    }
