"""Calls to the scheduler."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kilonova.contract.rpc.table import Api, Method, Sent, Served

_ALIASES = {
    "grizzly": "2.6",
    "havana": "2.9",
    "icehouse": "3.0",
    "juno": "3.0",
    "kilo": "4.2",
    "liberty": "4.2",
    "mitaka": "4.3",
    "newton": "4.3",
    "ocata": "4.3",
    "pike": "4.4",
}
"""Release name -> newest version that its services understand."""

_SELECTIONS: Mapping[str, Any] = {
    "refuses": "SelectionObjectsWithOldRPCVersionNotSupported",
    "guarded": ("return_objects", "return_alternates"),
}
"""Schedulers older than 4.5 answer with hosts only."""

_METHODS = (
    Method(
        "delete_aggregate",
        "aggregate",
        fanout=True,
        sent=(Sent("4.1", "aggregate"),),
    ),
    Method(
        "delete_instance_info",
        "host_name, instance_uuid",
        fanout=True,
        sent=(Sent("4.2", "host_name, instance_uuid"),),
    ),
    Method(
        "select_destinations",
        "spec_obj, instance_uuids, return_objects=False, return_alternates=False",
        call=True,
        long=True,
        sent=(
            Sent("4.5", "instance_uuids, spec_obj, return_objects, return_alternates"),
            Sent("4.4", "instance_uuids, spec_obj", up_to="4.4", **_SELECTIONS),
            Sent("4.3", "spec_obj", up_to="4.3", **_SELECTIONS),
            Sent(
                "4.0",
                "request_spec, filter_properties",
                up_to="4.2",
                source={"request_spec": "spec_obj", "filter_properties": "spec_obj"},
                forms={"request_spec": "request_spec_dict", "filter_properties": "filter_properties_dict"},
                **_SELECTIONS,
            ),
        ),
    ),
    Method(
        "sync_instance_info",
        "host_name, instance_uuids",
        fanout=True,
        sent=(Sent("4.2", "host_name, instance_uuids"),),
    ),
    Method(
        "update_aggregates",
        "aggregates",
        fanout=True,
        sent=(Sent("4.1", "aggregates"),),
    ),
    Method(
        "update_instance_info",
        "host_name, instance_info",
        fanout=True,
        sent=(Sent("4.2", "host_name, instance_info"),),
    ),
)

_SERVED = (
    Served("delete_aggregate", "aggregate"),
    Served("delete_instance_info", "host_name, instance_uuid"),
    Served(
        "select_destinations",
        (
            "request_spec=None, filter_properties=None, spec_obj=None, instance_uuids=None, "
            "return_objects=False, return_alternates=False"
        ),
        expected=("NoValidHost",),
    ),
    Served("sync_instance_info", "host_name, instance_uuids"),
    Served("update_aggregates", "aggregates"),
    Served("update_instance_info", "host_name, instance_info"),
)

API = Api(
    name="scheduler",
    topic="scheduler",
    version="4.5",
    namespace=None,
    aliases=_ALIASES,
    methods=_METHODS,
    served=_SERVED,
)
