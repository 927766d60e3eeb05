"""Security group."""

from __future__ import annotations

from typing import Any

from kilonova.contract.objects import types as t
from kilonova.contract.objects.base import Persistent, WireList, WireObject, register


@register
class SecurityGroup(Persistent, WireObject):
    """A security group by name or id."""

    VERSION = "1.2"
    fields: Any = {
        "id": t.Integer(),
        "uuid": t.UUID(),
        "description": t.String(),
        "name": t.String(),
        "project_id": t.String(),
        "user_id": t.String(),
    }
    REMOVED = {
        "uuid": "1.1",
    }
    METHODS = {
        "in_use": "",
        "refresh": "",
        "save": "",
    }
    CLASS_METHODS = {
        "get": "secgroup_id",
        "get_by_name": "project_id, group_name",
    }


@register
class SecurityGroupList(WireList):
    """A list of SecurityGroup objects."""

    VERSION = "1.1"
    fields: Any = {
        "objects": t.Objects("SecurityGroup"),
    }
    CLASS_METHODS = {
        "get_all": "",
        "get_by_instance": "instance",
        "get_by_project": "project_id",
        "get_counts": "project_id, user_id=None",
    }
