"""Serves `object_class_action_versions`, `object_action` and `object_backport_versions` on the conductor's topic."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from oslo_config import cfg

from kilonova.conductor.objects import strict, table
from kilonova.contract import exceptions
from kilonova.contract.context import RequestContext
from kilonova.contract.objects import WireObject
from kilonova.db import away
from kilonova.db.cells import Cells
from kilonova.db.objects.quotas import Databases
from kilonova.wire.rpc.errors import DBConnectionError


class ObjectService:
    """RPC handlers. Objects arrive and leave as objects; the bus serializes them."""

    def __init__(self, cells: Cells, conf: cfg.ConfigOpts) -> None:
        self._cells = cells
        self._whole = Databases(cells, conf)
        self._gate = strict.Gate(conf)

    def object_class_action_versions(
        self,
        ctxt: RequestContext,
        *,
        objname: str,
        objmethod: str,
        object_versions: dict[str, str],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
    ) -> Any:
        """Call a class method; an object in the answer has the versions of the caller's manifest."""
        served = _find(table.CLASS_METHODS, objname, objmethod)
        fn = self._gate.around(ctxt, strict.CLASS_METHODS, objname, objmethod, served)
        result = self._run(served, lambda tx: fn(tx, ctxt, *args, **kwargs), old=bool(kwargs.get("use_slave")))
        if isinstance(result, WireObject):
            return result.obj_to_primitive(target_version=object_versions[objname], version_manifest=object_versions)
        return result

    def object_action(
        self,
        ctxt: RequestContext,
        *,
        objinst: WireObject,
        objmethod: str,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
    ) -> tuple[dict[str, Any], Any]:
        """Call a method of an object; returns (changed fields and what is still to be saved, the method's result)."""
        served = _find(table.METHODS, objinst.obj_name(), objmethod)
        fn = self._gate.around(ctxt, strict.METHODS, objinst.obj_name(), objmethod, served)
        sent = objinst.obj_to_primitive()
        acted: list[WireObject] = []

        def act(tx: Any) -> Any:
            # A lost transaction has changed the object all the same, so the next one begins with what was sent.
            acted.append(WireObject.obj_from_primitive(sent, context=ctxt) if acted else objinst)
            return fn(tx, ctxt, acted[-1], *args, **kwargs)

        result = self._run(served, act)
        before, after = sent["nova_object.data"], _primitives(acted[-1])
        updates = {name: value for name, value in after.items() if name not in before or before[name] != value}
        updates["obj_what_changed"] = acted[-1].obj_what_changed()
        return updates, result

    def object_backport_versions(
        self, ctxt: RequestContext, *, objinst: WireObject, object_versions: dict[str, str]
    ) -> dict[str, Any]:
        """An object newer than a receiver understands, in the receiver's versions."""
        target = object_versions[objinst.obj_name()]
        primitive: dict[str, Any] = objinst.obj_to_primitive(target_version=target, version_manifest=object_versions)
        return primitive

    def _run(self, served: table.Served, act: Callable[[Any], Any], old: bool = False) -> Any:
        """`old`: the caller, a host's periodic work, is content with what the replica has.

        Raises DBConnectionError while the database is away: hosts ask again then.
        """
        with away.told(DBConnectionError):
            if served.whole:
                return act(self._whole)
            database = self._cells.api if served.api else self._cells.own
            if served.write:
                return database.run(act)
            return database.query_replica(act) if old else database.query(act)


def _find(methods: Mapping[str, Mapping[str, table.Served]], name: str, method: str) -> table.Served:
    served = methods.get(name, {}).get(method)
    if served is None:
        raise exceptions.ObjectActionError(action=method, reason=f"{name}.{method} is not served")
    return served


def _primitives(obj: WireObject) -> dict[str, Any]:
    return {
        name: field.to_primitive(obj, name, getattr(obj, name))
        for name, field in obj.fields.items()
        if obj.obj_attr_is_set(name)
    }
