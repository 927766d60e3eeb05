"""Request specs: JSON text of the object, without what belongs to one request only."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

import sqlalchemy as sa

from kilonova.contract import exceptions, objects
from kilonova.db.api import request_specs
from kilonova.db.objects import group
from kilonova.db.objects.hydrate import Row

EMPTIED = ("retry", "requested_destination", "requested_resources", "ignore_hosts")
"""Kept as null: they belong to the request that carried them."""

LEFT_OUT = ("network_metadata", "requested_networks", "request_level_params")
FROM_COLUMNS = {"id", "instance_uuid"}


def text(spec: objects.RequestSpec) -> str:
    """What the column keeps of a spec."""
    primitive = spec.obj_to_primitive()
    kept = {k: v for k, v in primitive["nova_object.data"].items() if k not in LEFT_OUT}
    kept |= {name: None for name in EMPTIED if kept.get(name)}
    if kept.get("instance_group"):
        members = {"members": None, "hosts": None}
        group_data = kept["instance_group"]["nova_object.data"]
        kept["instance_group"] = {**kept["instance_group"], "nova_object.data": {**group_data, **members}}
    return json.dumps({**primitive, "nova_object.data": kept})


def from_row(tx: sa.Connection, row: Row) -> objects.RequestSpec:
    return _fill(tx, objects.RequestSpec(), row)


def _fill(tx: sa.Connection, spec: objects.RequestSpec, row: Row) -> objects.RequestSpec:
    kept = objects.RequestSpec.obj_from_primitive(json.loads(row["spec"]))
    spec.id, spec.instance_uuid = row["id"], row["instance_uuid"]
    for name in type(spec).fields:
        if name not in FROM_COLUMNS and name not in LEFT_OUT and name not in EMPTIED and kept.obj_attr_is_set(name):
            setattr(spec, name, getattr(kept, name))
    for name in ("retry", "ignore_hosts"):
        if not spec.obj_attr_is_set(name):
            setattr(spec, name, None)
    _refresh_group(tx, spec)
    spec.obj_reset_changes(recursive=True)
    return spec


def _refresh_group(tx: sa.Connection, spec: objects.RequestSpec) -> None:
    """Members change after the spec was written: the group is read anew, and is gone when it was deleted."""
    if not (spec.obj_attr_is_set("instance_group") and spec.instance_group):
        return
    hints = spec.scheduler_hints if spec.obj_attr_is_set("scheduler_hints") and spec.scheduler_hints else {}
    named = (
        spec.instance_group.uuid if spec.instance_group.obj_attr_is_set("uuid") else (hints.get("group") or [None])[0]
    )
    try:
        spec.instance_group = group.get_by_uuid(tx, None, named)
    except exceptions.InstanceGroupNotFound:
        spec.instance_group = None
        hints.pop("group", None)


def get_by_instance_uuid(tx: sa.Connection, ctxt: Any, instance_uuid: str) -> objects.RequestSpec:
    """Raises RequestSpecNotFound."""
    row = request_specs.request_spec_get(tx, instance_uuid)
    if row is None:
        raise exceptions.RequestSpecNotFound(instance_uuid=instance_uuid)
    return from_row(tx, row)


def get_by_instance_uuids(tx: sa.Connection, ctxt: Any, instance_uuids: Collection[str]) -> list[objects.RequestSpec]:
    rows = request_specs.request_spec_list(tx, instance_uuids) if instance_uuids else []
    return [from_row(tx, row) for row in rows]


def create(tx: sa.Connection, ctxt: Any, spec: objects.RequestSpec) -> None:
    """Raises ObjectActionError, DuplicateError."""
    if spec.obj_attr_is_set("id"):
        raise exceptions.ObjectActionError(action="create", reason="already created")
    _fill(tx, spec, request_specs.request_spec_create(tx, {"instance_uuid": spec.instance_uuid, "spec": text(spec)}))


def save(tx: sa.Connection, ctxt: Any, spec: objects.RequestSpec) -> None:
    """Raises RequestSpecNotFound."""
    if not spec.obj_what_changed():
        return
    if not request_specs.request_spec_update(tx, spec.instance_uuid, {"spec": text(spec)}):
        raise exceptions.RequestSpecNotFound(instance_uuid=spec.instance_uuid)
    spec.obj_reset_changes(recursive=True)


def destroy(tx: sa.Connection, ctxt: Any, spec: objects.RequestSpec) -> None:
    """Raises RequestSpecNotFound."""
    if not request_specs.request_spec_delete(tx, spec.instance_uuid):
        raise exceptions.RequestSpecNotFound(instance_uuid=spec.instance_uuid)
    spec.obj_reset_changes()
