"""Task log."""

from __future__ import annotations

from typing import Any

from kilonova.contract.objects import types as t
from kilonova.contract.objects.base import Persistent, WireList, WireObject, register


@register
class TaskLog(Persistent, WireObject):
    """One run of a periodic task over a time span."""

    VERSION = "1.0"
    fields: Any = {
        "id": t.Integer(read_only=True),
        "errors": t.Integer(),
        "host": t.String(),
        "message": t.String(),
        "period_beginning": t.DateTime(),
        "period_ending": t.DateTime(),
        "state": t.String(read_only=True),
        "task_items": t.Integer(),
        "task_name": t.String(),
    }
    METHODS = {
        "begin_task": "",
        "end_task": "",
    }
    CLASS_METHODS = {
        "get": "task_name, period_beginning, period_ending, host, state=None",
    }


@register
class TaskLogList(WireList):
    """A list of TaskLog objects."""

    VERSION = "1.0"
    fields: Any = {
        "objects": t.Objects("TaskLog"),
    }
    CLASS_METHODS = {
        "get_all": "task_name, period_beginning, period_ending, host=None, state=None",
    }
