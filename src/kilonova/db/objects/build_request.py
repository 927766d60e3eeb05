"""Build requests: a server that has been accepted and is in no cell yet."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import sqlalchemy as sa

from kilonova.contract import exceptions, objects
from kilonova.db.api import build_requests
from kilonova.db.objects import hydrate
from kilonova.db.objects.hydrate import Row

PARTS = {"block_device_mappings": "BlockDeviceMappingList", "tags": "TagList"}
UNKNOWN_YET = (
    "terminated_at",
    "host",
    "node",
    "compute_id",
    "launched_at",
    "launched_on",
    "cell_name",
)
"""What an instance has only in a cell: null until then, so that readers need no exception for it."""


def values(request: objects.BuildRequest) -> dict[str, Any]:
    """The columns of a build request."""
    found: dict[str, Any] = {"instance_uuid": request.instance_uuid, "project_id": request.project_id}
    for name in ("instance", *PARTS):
        if request.obj_attr_is_set(name):
            found[name] = hydrate.dump(getattr(request, name))
    return found


def from_row(row: Row) -> objects.BuildRequest:
    """Raises BuildRequestNotFound when the row holds no instance."""
    return fill(objects.BuildRequest(), row)


def fill(request: objects.BuildRequest, row: Row) -> objects.BuildRequest:
    hydrate.fill(request, row, skip={"instance", *PARTS})
    for name, kind in PARTS.items():
        cls = getattr(objects, kind)
        setattr(request, name, hydrate.parse(cls, row[name]) or cls(objects=[]))
    if not row["instance"]:
        raise exceptions.BuildRequestNotFound(uuid=row["instance_uuid"])
    request.instance = _instance(request, json.loads(row["instance"]))
    request.obj_reset_changes(recursive=True)
    return request


def _instance(request: objects.BuildRequest, primitive: dict[str, Any]) -> objects.Instance:
    instance = objects.Instance.obj_from_primitive(primitive)
    instance.obj_set_defaults("deleted", "hidden")
    instance.disable_terminate = False
    for name in UNKNOWN_YET:
        setattr(instance, name, None)
    if not instance.obj_attr_is_set("locked_by"):
        instance.locked_by = None
    instance.created_at, instance.updated_at = request.created_at, request.updated_at
    instance.tags = request.tags
    return instance


def get_by_instance_uuid(tx: sa.Connection, ctxt: Any, instance_uuid: str) -> objects.BuildRequest:
    """Raises BuildRequestNotFound."""
    row = build_requests.build_request_get(tx, instance_uuid)
    if row is None:
        raise exceptions.BuildRequestNotFound(uuid=instance_uuid)
    return from_row(row)


def create(tx: sa.Connection, ctxt: Any, request: objects.BuildRequest) -> None:
    if request.obj_attr_is_set("id"):
        raise exceptions.ObjectActionError(action="create", reason="already created")
    fill(request, build_requests.build_request_create(tx, values(request)))


def save(tx: sa.Connection, ctxt: Any, request: objects.BuildRequest) -> None:
    """Raises BuildRequestNotFound."""
    if not build_requests.build_request_update(tx, request.instance_uuid, values(request)):
        raise exceptions.BuildRequestNotFound(uuid=request.instance_uuid)
    request.obj_reset_changes(recursive=True)


def destroy(tx: sa.Connection, ctxt: Any, request: objects.BuildRequest) -> None:
    """Raises BuildRequestNotFound: of two who delete it, one is told so."""
    if not build_requests.build_request_delete(tx, request.instance_uuid):
        raise exceptions.BuildRequestNotFound(uuid=request.instance_uuid)
    request.obj_reset_changes()


def get_all(tx: sa.Connection, ctxt: Any) -> objects.BuildRequestList:
    """Of those who are no administrators: their project's."""
    return _list(build_requests.build_request_list(tx, project_id=None if ctxt.is_admin else ctxt.project_id))


def _list(rows: Iterable[Row]) -> objects.BuildRequestList:
    return objects.BuildRequestList(objects=[from_row(row) for row in rows if row["instance"]])
