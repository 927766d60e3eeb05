"""Instance action."""

from __future__ import annotations

from typing import Any

from kilonova.contract.objects import types as t
from kilonova.contract.objects.base import DictCompat, Persistent, WireList, WireObject, register


@register
class InstanceAction(Persistent, WireObject, DictCompat):
    """Something that a user did to a server."""

    VERSION = "1.2"
    fields: Any = {
        "id": t.Integer(),
        "action": t.String(nullable=True),
        "finish_time": t.DateTime(nullable=True),
        "instance_uuid": t.UUID(nullable=True),
        "message": t.String(nullable=True),
        "project_id": t.String(nullable=True),
        "request_id": t.String(nullable=True),
        "start_time": t.DateTime(nullable=True),
        "user_id": t.String(nullable=True),
    }
    METHODS = {
        "create": "",
        "finish": "",
    }
    CLASS_METHODS = {
        "action_finish": "instance_uuid, want_result=True",
        "action_start": "instance_uuid, action_name, want_result=True",
        "get_by_request_id": "instance_uuid, request_id",
    }


@register
class InstanceActionEvent(Persistent, WireObject, DictCompat):
    """A step of an action: when, where, with which result."""

    VERSION = "1.4"
    fields: Any = {
        "id": t.Integer(),
        "action_id": t.Integer(nullable=True),
        "details": t.String(nullable=True),
        "event": t.String(nullable=True),
        "finish_time": t.DateTime(nullable=True),
        "host": t.String(nullable=True),
        "result": t.String(nullable=True),
        "start_time": t.DateTime(nullable=True),
        "traceback": t.String(nullable=True),
    }
    REMOVED = {
        "details": "1.3",
        "host": "1.1",
    }
    METHODS = {
        "create": "instance_uuid, request_id",
        "finish": "",
        "finish_with_failure": "exc_val, exc_tb",
    }
    CLASS_METHODS = {
        "event_finish": "instance_uuid, event_name, want_result=True",
        "event_finish_with_failure": "instance_uuid, event_name, exc_val=None, exc_tb=None, want_result=None",
        "event_start": "instance_uuid, event_name, want_result=True, host=None",
        "get_by_id": "action_id, event_id",
    }


@register
class InstanceActionEventList(WireList):
    """A list of InstanceActionEvent objects."""

    VERSION = "1.1"
    fields: Any = {
        "objects": t.Objects("InstanceActionEvent"),
    }
    CLASS_METHODS = {
        "get_by_action": "action_id",
    }


@register
class InstanceActionList(WireList):
    """A list of InstanceAction objects."""

    VERSION = "1.1"
    fields: Any = {
        "objects": t.Objects("InstanceAction"),
    }
    CLASS_METHODS = {
        "get_by_instance_uuid": "instance_uuid, limit=None, marker=None, filters=None",
    }
