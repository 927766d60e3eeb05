"""The object service that compute hosts call."""

from __future__ import annotations

from kilonova.contract.rpc.table import Api, Method, Sent, Served

_ALIASES = {
    "grizzly": "1.48",
    "havana": "1.58",
    "icehouse": "2.0",
    "juno": "2.0",
    "kilo": "2.1",
    "liberty": "3.0",
    "mitaka": "3.0",
    "newton": "3.0",
    "ocata": "3.0",
}
"""Release name -> newest version that its services understand."""

_METHODS = (
    Method(
        "object_action",
        "objinst, objmethod, args, kwargs",
        call=True,
        sent=(Sent("3.0", "objinst, objmethod, args, kwargs"),),
    ),
    Method(
        "object_backport_versions",
        "objinst, object_versions",
        call=True,
        sent=(Sent("3.0", "objinst, object_versions"),),
    ),
    Method(
        "object_class_action_versions",
        "objname, objmethod, object_versions, args, kwargs",
        call=True,
        sent=(Sent("3.0", "objname, objmethod, object_versions, args, kwargs"),),
    ),
)

_SERVED = (
    Served("object_action", "objinst, objmethod, args, kwargs"),
    Served("object_backport_versions", "objinst, object_versions"),
    Served("object_class_action_versions", "objname, objmethod, object_versions, args, kwargs"),
    Served("provider_fw_rule_get_all", ""),
)

API = Api(
    name="conductor",
    topic="conductor",
    version="3.0",
    namespace=None,
    aliases=_ALIASES,
    methods=_METHODS,
    served=_SERVED,
)
