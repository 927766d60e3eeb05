"""What the bus and the configuration declare, in the shape of the contract's files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from oslo_versionedobjects import fields as ovo

from kilonova import conf
from kilonova.contract import context, exceptions, notifications, objects
from kilonova.contract.objects import types
from kilonova.contract.objects.signatures import Argument, arguments
from kilonova.contract.rpc import baseapi, compute, compute_task, compute_v5, conductor, scheduler
from kilonova.contract.rpc.table import Api, Method, Sent, Served

APIS: tuple[Api, ...] = (baseapi.API, compute.API, compute_task.API, conductor.API, scheduler.API)


# ---------------------------------------------------------------- objects


def field_fact(field: Any) -> dict[str, Any]:
    """A field: type, whether it may be null, values, element, default."""
    kind = field._type
    fact: dict[str, Any] = {
        "type": "Enum" if isinstance(kind, ovo.Enum) else type(kind).__name__,
        "nullable": field.nullable,
        "read_only": field.read_only,
    }
    if isinstance(kind, ovo.Enum):
        fact["enum"] = list(kind.valid_values)
    if isinstance(kind, ovo.Object):
        fact |= {"object": kind._obj_name, "subclasses": kind._subclasses}
    if isinstance(kind, ovo.CompoundFieldType):
        fact["element"] = field_fact(kind._element_type)
    if field.default is not types.UNSPECIFIED:
        fact["default"] = _default(field.default)
    return fact


def _default(value: Any) -> dict[str, Any]:
    if isinstance(value, objects.WireObject):
        return {"object": value.obj_name()}
    return {"value": sorted(value) if isinstance(value, set) else value}


def _limits(limits: Mapping[str, Any]) -> dict[str, Any]:
    return {
        value: {"up_to": limit.up_to}
        | ({"rewritten": limit.instead} if limit.instead else {"raises": "ObjectActionError"})
        for value, limit in limits.items()
    }


def export_objects() -> dict[str, Any]:
    """Every wire object: fields, and what older receivers do not get."""
    found = {}
    for name in objects.names():
        cls = objects.load(name)
        found[name] = {
            "version": cls.VERSION,
            "fields": {field: field_fact(kind) for field, kind in cls.fields.items()},
            "backlevel": {
                "removed_when_target_at_most": dict(cls.REMOVED),
                "enum_limits": {field: _limits(limits) for field, limits in cls.LIMITS.items()},
            },
        }
    return {"service_version": objects.SERVICE_VERSION, "objects": found}


def export_notifications() -> dict[str, Any]:
    """The objects. Event types are exported by who says them: none is said yet."""
    found = {}
    for name in notifications.names():
        cls = notifications.load(name)
        fields = {field: field_fact(kind) for field, kind in cls.fields.items()}
        found[name] = {"version": cls.VERSION, "fields": fields}
    return {"objects": found, "event_types": {}, "legacy_event_types": []}


def _arguments(declared: Iterable[Argument]) -> list[dict[str, Any]]:
    return [
        {"name": a.name} | ({"kind": a.kind} if a.kind else {}) | ({} if a.default is ... else {"default": a.default})
        for a in declared
    ]


def export_remotable() -> dict[str, Any]:
    """What the object service serves, by the table that serves it."""
    from kilonova.conductor.objects import table

    found: dict[str, Any] = {}
    for key, attribute, served in (
        ("remotable_methods", "METHODS", table.METHODS),
        ("remotable_classmethods", "CLASS_METHODS", table.CLASS_METHODS),
    ):
        for name, methods in served.items():
            declared = getattr(objects.load(name), attribute)
            facts = {method: _arguments(arguments(declared[method])) for method in methods}
            found.setdefault(name, {})[key] = facts
    return {"objects": found}


# ---------------------------------------------------------------- rpc


def _message(api: Api, method: Method, sent: Sent, mode: str) -> dict[str, Any]:
    own_timeout = any(argument.name == "timeout" for argument in method.arguments)
    return {
        "mode": mode,
        "version": sent.version,
        "topic": sent.topic or api.topic,
        "namespace": api.namespace,
        "fanout": method.fanout,
        "server": method.host,
        "args": list(sent.names),
        "timeout": "timeout" if own_timeout else "long_rpc_timeout" if method.long else None,
        "call_monitor": "rpc_response_timeout" if method.long else None,
    }


def _rows(api: Api, method: Method) -> list[dict[str, Any]]:
    rows = []
    for sent in method.sent:
        for when, mode in _modes(method):
            row: dict[str, Any] = {"cap": sent.up_to, "when": when}
            if sent.refuses:
                rows.append(row | {"variant": "full", "sent": {"raises": sent.refuses}})
            if sent.version is not None:
                variant = "optional_omitted" if sent.refuses else "full"
                rows.append(row | {"variant": variant, "sent": _message(api, method, sent, mode)})
    return rows


def _modes(method: Method) -> list[tuple[dict[str, bool] | None, str]]:
    if method.either == "do_cast":
        return [({"do_cast": False}, "call"), ({"do_cast": True}, "cast")]
    return [(None, "call" if method.call else "cast")]


def _api(api: Api) -> dict[str, Any]:
    facts = {
        "target": {
            "topic": "any service topic" if api.topic == "*" else api.topic,
            "alt_topic": api.alt_topic,
            "version": re.sub(r"\..*", ".0", api.version),
            "namespace": api.namespace,
        },
        "version_aliases": dict(api.aliases),
        "server": _server(api, api.served),
        "methods": {method.name: {"by_cap": _rows(api, method)} for method in api.methods},
    }
    if api is compute.API:
        facts["server_v5"] = _server(compute_v5.API, compute_v5.DIFFERENT)
    return facts


def _server(api: Api, served: Iterable[Served]) -> dict[str, Any]:
    methods = list(served)
    return {
        "version": api.version,
        "namespace": api.namespace,
        "methods_taking_context": {s.name: _arguments(s.arguments) for s in methods},
        "expected_exceptions": {s.name: list(s.expected) for s in methods if s.expected},
    }


def export_rpc() -> dict[str, Any]:
    """Every interface: what is served, and what clients send at each version cap."""
    return {
        "apis": {api.name: _api(api) for api in APIS},
        "context_fields": sorted(context.admin().to_dict()),
        "compute_rpc_by_service_version": {str(n): v for n, v in compute.API.by_service_version.items()},
    }


def export_exceptions() -> dict[str, Any]:
    """Every exception that may cross the bus or become a fault."""
    found = {}
    for name, cls in vars(exceptions).items():
        if isinstance(cls, type) and issubclass(cls, exceptions.NovaException):
            fields = sorted(set(re.findall(r"%\((\w+)\)", cls.msg_fmt)))
            found[name] = {"code": cls.code, "safe": cls.safe, "fields": fields}
        elif isinstance(cls, type) and issubclass(cls, Exception):
            found[name] = {"code": None, "safe": False, "fields": []}
    return {"exceptions": found}


# ---------------------------------------------------------------- options


def _option_type(kind: Any) -> dict[str, Any]:
    fact: dict[str, Any] = {"type": type(kind).__name__}
    for ours, theirs in (("min", "min"), ("max", "max"), ("choices", "choices"), ("schemes", "schemes")):
        value = getattr(kind, ours, None)
        fact[theirs] = list(value) if isinstance(value, list | tuple | dict) else value
    pattern = getattr(kind, "regex", None)
    fact["regex"] = getattr(pattern, "pattern", pattern)
    for ours, theirs in (("item_type", "item"), ("value_type", "item"), ("key_type", "key")):
        if getattr(kind, ours, None) is not None:
            fact[theirs] = _option_type(getattr(kind, ours))
    return fact


def _option(group: str | None, option: Any) -> dict[str, Any]:
    return _option_type(option.type) | {
        "group": group or "DEFAULT",
        "name": option.name,
        "dest": option.dest,
        "default": option.default,
        "mutable": option.mutable,
        "required": option.required,
        "secret": option.secret,
        "advanced": option.advanced,
        "multi": option.multi,
        "deprecated_for_removal": option.deprecated_for_removal,
        "deprecated_names": [{"group": d.group, "name": d.name} for d in option.deprecated_opts],
    }


def export_options() -> dict[str, Any]:
    """Every option that some part of ours declares."""
    return {"options": [_option(group, option) for group, options in conf.list_options() for option in options]}
