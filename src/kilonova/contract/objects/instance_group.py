"""Instance group."""

from __future__ import annotations

from typing import Any

from kilonova.contract.objects import types as t
from kilonova.contract.objects.base import DictCompat, Persistent, WireList, WireObject, register, version_tuple


@register
class InstanceGroup(Persistent, WireObject, DictCompat):
    """Servers that are placed together or apart by a policy."""

    VERSION = "1.11"
    fields: Any = {
        "id": t.Integer(),
        "uuid": t.UUID(),
        "_rules": t.DictOfStrings(),
        "hosts": t.ListOfStrings(nullable=True),
        "members": t.ListOfStrings(nullable=True),
        "name": t.String(nullable=True),
        "policies": t.ListOfStrings(nullable=True, read_only=True),
        "policy": t.String(nullable=True),
        "project_id": t.String(nullable=True),
        "user_id": t.String(nullable=True),
    }
    REMOVED = {
        "policy": "1.10",
    }
    METHODS = {
        "count_members_by_user": "user_id",
        "create": "",
        "destroy": "",
        "get_hosts": "exclude=None",
        "refresh": "",
        "save": "",
    }
    CLASS_METHODS = {
        "add_members": "group_uuid, instance_uuids",
        "get_by_instance_uuid": "instance_uuid",
        "get_by_name": "name",
        "get_by_uuid": "uuid",
    }

    def obj_make_compatible(self, primitive: dict[str, Any], target_version: str) -> None:
        """As every object; receivers up to 1.10 have a list of policies, those up to 1.6 an empty `metadetails`."""
        target = version_tuple(target_version)
        if target < (1, 11):
            policy = primitive.get("policy")
            primitive["policies"] = [policy] if policy else []
            primitive.pop("rules", None)
        if target < (1, 7):
            primitive["metadetails"] = {}
        super().obj_make_compatible(primitive, target_version)


@register
class InstanceGroupList(WireList):
    """A list of InstanceGroup objects."""

    VERSION = "1.8"
    fields: Any = {
        "objects": t.Objects("InstanceGroup"),
    }
    CLASS_METHODS = {
        "get_all": "",
        "get_by_project_id": "project_id",
        "get_counts": "project_id, user_id=None",
    }
